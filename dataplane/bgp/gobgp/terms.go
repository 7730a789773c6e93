// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"

	"github.com/osrg/gobgp/v4/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

// Paths that are not announced to all peers alike bear a tag in GoBGP's table, which the export policy knows: for each tag it
// leaves out peers, or gives them other attributes, and takes the tag off. What a tag means never changes, so that a path under
// other terms is another path in the table, and the policy that knows it is there before the path is.

// exportTerms is the policy's name.
const exportTerms = "fairlead-export-terms"

// tagGlobal begins a tag. The AS number is reserved (RFC 7300), so that no community of a user begins like that.
const tagGlobal = 4294967295

// tag stands for the terms of a path.
type tag bgp.LargeCommunity

func (t tag) String() string { return bgp.LargeCommunity(t).String() }

// tagOf is the tag of a normal path; false for one that is announced to all peers alike.
func tagOf(p bgp.Path) (tag, bool) {
	if !p.Withheld && len(p.Terms) == 0 {
		return tag{}, false
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%t %v", p.Withheld, p.Terms)
	sum := h.Sum64()
	return tag{tagGlobal, uint32(sum >> 32), uint32(sum)}, true
}

func withTag(p bgp.Path) []bgp.LargeCommunity {
	t, tagged := tagOf(p)
	if !tagged {
		return p.LargeCommunities
	}
	return append(slices.Clone(p.LargeCommunities), bgp.LargeCommunity(t))
}

// meaning is what a tag stands for.
type meaning struct {
	withheld bool
	terms    []bgp.Terms
}

// terms are all that the export policy knows.
type terms struct {
	means map[tag]meaning
	named map[string][]netip.Addr // peers by their names, of those that terms name
}

// keeping gives terms in which names that no peer has any more mean who had them, as long as no path goes by them: paths that do not are
// on their way out, and are to be withdrawn from who was sent them.
func (t terms) keeping(before terms, paths bgp.Paths, peers []bgp.Peer) terms {
	gone := maps.Clone(before.named)
	for _, p := range peers {
		delete(gone, p.Name)
	}
	if len(gone) == 0 {
		return t
	}
	for p := range paths.All() {
		for _, one := range p.Terms {
			delete(gone, one.Peer)
		}
	}
	maps.Copy(t.named, gone)
	return t
}

// with gives terms that also know those of some paths, among these peers.
func (t terms) with(paths bgp.Paths, peers []bgp.Peer) terms {
	out := terms{means: maps.Clone(t.means), named: map[string][]netip.Addr{}}
	for p := range paths.All() {
		if !p.Withheld && len(p.Terms) == 0 {
			continue
		}
		p = p.Normal()
		if out.means == nil {
			out.means = map[tag]meaning{}
		}
		if of, tagged := tagOf(p); tagged {
			out.means[of] = meaning{p.Withheld, p.Terms}
		}
	}
	names := map[string]bool{}
	for _, m := range out.means {
		for _, t := range m.terms {
			names[t.Peer] = true
		}
	}
	for _, p := range peers {
		if names[p.Name] {
			out.named[p.Name] = append(out.named[p.Name], p.Address.Unmap())
		}
	}
	for _, list := range out.named {
		slices.SortFunc(list, netip.Addr.Compare)
	}
	return out
}

func (t terms) same(u terms) bool {
	return maps.EqualFunc(t.means, u.means, func(meaning, meaning) bool { return true }) && // a tag means one thing
		maps.EqualFunc(t.named, u.named, slices.Equal)
}

// setTerms has the policy know terms. It gives the peers that go by another name, so that they are to be sent other paths.
func (s *Speaker) setTerms(ctx context.Context, now terms) (renamed []netip.Addr, err error) {
	before := s.terms
	if before.same(now) {
		return nil, nil
	}
	demoted, err := s.listDemoted(ctx)
	if err != nil {
		return nil, err
	}
	s.terms = now
	if err := s.installPolicies(ctx, demoted); err != nil {
		s.terms = before
		return nil, err
	}
	return before.moved(now), nil
}

// moved lists the peers that are sent paths under other terms than before, by terms that stay. A name that changed alone moves nobody.
func (t terms) moved(now terms) (out []netip.Addr) {
	for of, m := range t.means {
		if _, stays := now.means[of]; !stays {
			continue
		}
		for _, one := range m.terms {
			for _, a := range slices.Concat(t.named[one.Peer], now.named[one.Peer]) {
				if !contains(out, a) && !m.towards(a, t.named).same(m.towards(a, now.named)) {
					out = append(out, a)
				}
			}
		}
	}
	return out
}

// towards gives the terms under which a peer is sent a path, as peers are named; of those of the path itself nil.
func (m meaning) towards(a netip.Addr, named map[string][]netip.Addr) sent {
	for _, one := range m.terms {
		if contains(named[one.Peer], a) {
			one.Peer = ""
			return sent{&one, true}
		}
	}
	return sent{nil, !m.withheld}
}

// sent is whether a peer is sent a path, and under which terms of its own.
type sent struct {
	under *bgp.Terms
	at    bool
}

func (s sent) same(other sent) bool {
	return s.at == other.at && (s.under == nil) == (other.under == nil) && (s.under == nil || s.under.Equal(*other.under))
}

// restartAll restarts sessions with peers that are still there.
func (s *Speaker) restartAll(ctx context.Context, list []netip.Addr) error {
	if len(list) == 0 {
		return nil
	}
	peers, err := s.listPeers(ctx)
	if err != nil {
		return fmt.Errorf("list peers: %w", err)
	}
	var errs []error
	for _, a := range list {
		if peers[a] == nil {
			continue
		}
		peer, err := decodePeer(peers[a])
		if err == nil {
			s.residue.Doubt(a)
			err = s.restartPeer(ctx, peer)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// untag gives a path that was read back its terms. A tag that nobody knows makes it another path than any that is wanted.
func (s *Speaker) untag(p *bgp.Path) {
	for i, c := range p.LargeCommunities {
		if c.Global != tagGlobal {
			continue
		}
		m, ok := s.terms.means[tag(c)]
		if !ok {
			m = meaning{withheld: true, terms: []bgp.Terms{{Peer: tag(c).String()}}}
		}
		p.Withheld, p.Terms = m.withheld, m.terms
		p.LargeCommunities = slices.Delete(p.LargeCommunities, i, i+1)
		if len(p.LargeCommunities) == 0 {
			p.LargeCommunities = nil
		}
		return
	}
}

// policy is the export policy, and the sets that it goes by. Its statements accept nothing: demotion comes after it.
func (t terms) policy() (*api.Policy, []*api.DefinedSet) {
	policy := &api.Policy{Name: exportTerms}
	var sets []*api.DefinedSet
	for _, name := range slices.Sorted(maps.Keys(t.named)) {
		sets = append(sets, neighborSet(peerSet(name), t.named[name]))
	}
	tags := slices.SortedFunc(maps.Keys(t.means), func(a, b tag) int { return slices.Compare([]uint32{a.Local1, a.Local2}, []uint32{b.Local1, b.Local2}) })
	for _, of := range tags {
		set := exportTerms + "-" + of.String()
		sets = append(sets, &api.DefinedSet{DefinedType: api.DefinedType_DEFINED_TYPE_LARGE_COMMUNITY, Name: set, List: []string{"^" + of.String() + "$"}})
		bears := &api.MatchSet{Type: api.MatchSet_TYPE_ANY, Name: set}
		m := t.means[of]
		var sent []netip.Addr
		for i, one := range m.terms {
			sent = append(sent, t.named[one.Peer]...)
			if len(t.named[one.Peer]) == 0 {
				continue
			}
			policy.Statements = append(policy.Statements, &api.Statement{
				Name:       fmt.Sprintf("%s-%d", set, i),
				Conditions: &api.Conditions{NeighborSet: &api.MatchSet{Type: api.MatchSet_TYPE_ANY, Name: peerSet(one.Peer)}, LargeCommunitySet: bears},
				Actions:    attributesOf(one),
			})
		}
		if !m.withheld {
			continue
		}
		others := set + "-sent"
		sets = append(sets, neighborSet(others, sent))
		policy.Statements = append(policy.Statements, &api.Statement{
			Name: others,
			Conditions: &api.Conditions{
				NeighborSet: &api.MatchSet{Name: others, Type: api.MatchSet_TYPE_INVERT}, LargeCommunitySet: bears,
			},
			Actions: &api.Actions{RouteAction: api.RouteAction_ROUTE_ACTION_REJECT},
		})
	}
	anyTag := exportTerms + "-any"
	pattern := fmt.Sprintf("^%d:.*$", uint32(tagGlobal))
	sets = append(sets, &api.DefinedSet{DefinedType: api.DefinedType_DEFINED_TYPE_LARGE_COMMUNITY, Name: anyTag, List: []string{pattern}})
	policy.Statements = append(policy.Statements, &api.Statement{
		Name:       anyTag,
		Conditions: &api.Conditions{LargeCommunitySet: &api.MatchSet{Type: api.MatchSet_TYPE_ANY, Name: anyTag}},
		Actions:    &api.Actions{LargeCommunity: &api.CommunityAction{Type: api.CommunityAction_TYPE_REMOVE, Communities: []string{pattern}}},
	})
	return policy, sets
}

func peerSet(name string) string { return exportTerms + "-peer-" + name }

// attributesOf puts the attributes of terms in place of the path's, its tag among them: nothing more is to be done for that peer.
func attributesOf(t bgp.Terms) *api.Actions {
	a := &api.Actions{
		Med:            &api.MedAction{Type: api.MedAction_TYPE_REPLACE, Value: int64(t.MED)},
		Community:      &api.CommunityAction{Type: api.CommunityAction_TYPE_REMOVE, Communities: []string{"^.*$"}},
		LargeCommunity: &api.CommunityAction{Type: api.CommunityAction_TYPE_REMOVE, Communities: []string{"^.*$"}},
		LocalPref:      &api.LocalPrefAction{Value: bgp.DefaultLocalPref},
	}
	if t.LocalPref != 0 {
		a.LocalPref.Value = t.LocalPref
	}
	if len(t.Communities) > 0 {
		a.Community = &api.CommunityAction{Type: api.CommunityAction_TYPE_REPLACE}
		for _, c := range t.Communities {
			a.Community.Communities = append(a.Community.Communities, c.String())
		}
	}
	if len(t.LargeCommunities) > 0 {
		a.LargeCommunity = &api.CommunityAction{Type: api.CommunityAction_TYPE_REPLACE}
		for _, c := range t.LargeCommunities {
			a.LargeCommunity.Communities = append(a.LargeCommunity.Communities, c.String())
		}
	}
	return a
}
