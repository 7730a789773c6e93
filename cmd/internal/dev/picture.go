// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/derive"
	"fairlead.io/fairlead/dataplane/bgp/testswitch"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Picture is what a dev process shows, and what --once prints as JSON.
type Picture struct {
	Members  []MemberPicture  `json:"members"`
	Leader   string           `json:"leader"`
	Services []ServicePicture `json:"services"`
	Routes   []RoutePicture   `json:"routes"`
	Policies []PolicyPicture  `json:"policies"`
	Switch   SwitchPicture    `json:"switch"`
	// Problems are why manifests are not used, a line each; Warnings are what is left out of those that are, and what of pools, peers and
	// advertisements is not as they ask for.
	Problems []string `json:"problems"`
	Warnings []string `json:"warnings"`
	// sent is where the built-in switch is to send packets.
	sent []RoutePicture
	read bool // all manifests were
}

// MemberPicture is one member. Digests are equal where applied indexes are.
type MemberPicture struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	Leader  bool   `json:"leader"`
	Applied uint64 `json:"applied"`
	Digest  string `json:"digest"`
}

// ServicePicture is one Service with the addresses that it has, or why it has none.
type ServicePicture struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
	Pending   string   `json:"pending,omitempty"`
	gone      bool     // no manifest is there of it any more
	atNodes   bool     // all that it asks for by spec.externalIPs are addresses of nodes, which are left to them
}

// RoutePicture is a prefix and the next hops it is to have, sorted.
type RoutePicture struct {
	Prefix   string   `json:"prefix"`
	NextHops []string `json:"nextHops"`
	// hops tells where each stands, in the same order.
	hops   []fsm.HopState
	nobody []bool // of the hops: there is nobody who is to be sent it and can be
}

// PolicyPicture is a policy of client-side balancing: what it captures, how many backends that gets, and why it is not carried out as it
// asks.
type PolicyPicture struct {
	Name     string   `json:"name"`
	Captures []string `json:"captures"`
	Backends int      `json:"backends"`
	Pending  string   `json:"pending,omitempty"`
}

// SwitchPicture is what the switch itself holds.
type SwitchPicture struct {
	RIB []RoutePicture `json:"rib"`
}

// take draws the picture. Services and routes are as the member that is furthest sees them.
func take(g *group, sw *testswitch.Switch) Picture {
	p := Picture{Members: []MemberPicture{}, Services: []ServicePicture{}, Routes: []RoutePicture{}, Policies: []PolicyPicture{}, Problems: []string{}, Warnings: []string{}}
	var best *fsm.View
	running := g.members()
	for _, c := range g.configs {
		mp := MemberPicture{Name: c.Name}
		i := slices.IndexFunc(running, func(m *member.Member) bool { return m.Name() == c.Name })
		if i >= 0 {
			view := running[i].Record().Read()
			mp.Running, mp.Leader, mp.Applied, mp.Digest = true, running[i].Leads(), uint64(view.Applied()), view.Digest().String()
			if mp.Leader {
				p.Leader = mp.Name
			}
			if best == nil || best.Applied() < view.Applied() {
				best = view
			}
		}
		p.Members = append(p.Members, mp)
	}
	if best != nil {
		p.Services, p.Routes, p.Policies, p.sent = servicesOf(best), routesOf(best), policiesOf(best), sentBy(best)
	}
	p.Switch.RIB = ribOf(sw)
	if len(running) > 0 { // all members read the same folders
		p.Problems, p.Warnings = running[0].Problems()
		for _, m := range running {
			p.Warnings = append(p.Warnings, m.Unmet()...)
		}
		var shown map[world.ID]bool
		shown, p.read = running[0].Shown()
		for i, s := range p.Services {
			namespace, name, _ := strings.Cut(s.Name, "/")
			p.Services[i].gone = !shown[world.ID{Namespace: namespace, Name: name}]
		}
	}
	return p
}

func servicesOf(v *fsm.View) []ServicePicture {
	out := []ServicePicture{}
	ofNodes := map[netip.Addr]bool{}
	for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		for _, a := range slices.Concat(n.Addresses, n.Others) {
			ofNodes[a] = true
		}
	}
	noNodeHas := func(a netip.Addr) bool { return !ofNodes[a] }
	for _, s := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		sp := ServicePicture{Name: string(s.ID), Addresses: []string{}, Pending: s.Pending.Text, atNodes: len(s.External()) > 0 && !slices.ContainsFunc(s.External(), noNodeHas)}
		for _, a := range v.Addresses(s.ID) {
			if !a.Releasing {
				sp.Addresses = append(sp.Addresses, a.Address.String())
			}
		}
		out = append(out, sp)
	}
	return out
}

func routesOf(v *fsm.View) []RoutePicture {
	out := []RoutePicture{}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		rp := RoutePicture{Prefix: r.Prefix.String(), NextHops: []string{}}
		hops := slices.Clone(r.NextHops)
		slices.SortFunc(hops, func(a, b fsm.NextHop) int { return a.Address().Compare(b.Address()) })
		for _, h := range hops {
			if !h.Withdrawing {
				rp.NextHops = append(rp.NextHops, h.Address().String())
				rp.hops, rp.nobody = append(rp.hops, v.HopState(r, h)), append(rp.nobody, v.Unreached(r, h))
			}
		}
		if len(rp.NextHops) > 0 {
			out = append(out, rp)
		}
	}
	sortRoutes(out)
	return out
}

// sentBy gives, of what a member announces to the built-in switch, each prefix and the next hops of its best paths: prefixes in the place of
// addresses and beside them, and nothing that the switch is left out of.
func sentBy(v *fsm.View) []RoutePicture {
	var announced derive.Rollup
	paths, _, _ := announced.Follow(v)
	out := []RoutePicture{}
	for prefix := range paths.Prefixes() {
		var told []bgp.Path
		for _, path := range paths.Of(prefix) {
			if path, sent := path.To(switchName); sent {
				told = append(told, path)
			}
		}
		if len(told) == 0 {
			continue
		}
		best := slices.MinFunc(told, bgp.Prefer)
		rp := RoutePicture{Prefix: prefix.String(), NextHops: []string{}}
		for _, path := range told {
			if bgp.Prefer(path, best) == 0 {
				rp.NextHops = append(rp.NextHops, path.NextHop.String())
			}
		}
		out = append(out, rp)
	}
	sortRoutes(out)
	return out
}

func policiesOf(v *fsm.View) []PolicyPicture {
	out := []PolicyPicture{}
	for _, r := range fsm.List[*fsm.Policy](v, fsm.TablePolicies) {
		pp := PolicyPicture{Name: string(r.ID), Captures: []string{}, Backends: len(r.Backends), Pending: r.Pending.Text}
		for _, c := range r.Captures {
			pp.Captures = append(pp.Captures, fmt.Sprintf("%s/%s", netip.AddrPortFrom(c.Address, c.Port.Number), c.Port.Protocol))
		}
		out = append(out, pp)
	}
	return out
}

func ribOf(sw *testswitch.Switch) []RoutePicture {
	out := []RoutePicture{}
	for _, e := range sw.RIB() {
		rp := RoutePicture{Prefix: e.Prefix.String(), NextHops: []string{}}
		for _, h := range e.NextHops {
			rp.NextHops = append(rp.NextHops, h.String())
		}
		out = append(out, rp)
	}
	sortRoutes(out)
	return out
}

func sortRoutes(routes []RoutePicture) {
	slices.SortFunc(routes, func(a, b RoutePicture) int {
		pa, pb := netip.MustParsePrefix(a.Prefix), netip.MustParsePrefix(b.Prefix) // they were made by String
		return cmp.Or(pa.Addr().Compare(pb.Addr()), cmp.Compare(pa.Bits(), pb.Bits()))
	})
}

// agrees tells why the picture is not yet one of a group at rest, nil if it is: one leader, equal records,
// every wanted path on the wire, and the switch holding just what it is sent.
func (p Picture) agrees() error {
	if p.Leader == "" {
		return fmt.Errorf("no leader")
	}
	var first *MemberPicture
	for i, m := range p.Members {
		switch {
		case !m.Running:
		case first == nil:
			first = &p.Members[i]
		case m.Applied != first.Applied || m.Digest != first.Digest:
			return fmt.Errorf("%s is at index %d, %s at %d", m.Name, m.Applied, first.Name, first.Applied)
		}
	}
	if !p.read {
		return fmt.Errorf("not all manifests were read")
	}
	for _, s := range p.Services {
		if s.gone {
			return fmt.Errorf("service %s is in no manifest, and not taken back yet", s.Name)
		}
		if len(s.Addresses) == 0 && s.Pending == "" && !s.atNodes {
			return fmt.Errorf("service %s has neither address nor reason", s.Name)
		}
	}
	for _, r := range p.Routes {
		for i, state := range r.hops {
			if state != fsm.HopAnnounced && !r.nobody[i] {
				return fmt.Errorf("route %s via %s is %s", r.Prefix, r.NextHops[i], state)
			}
		}
	}
	if len(p.Services) == 0 {
		return fmt.Errorf("no Service yet")
	}
	same := func(a, b RoutePicture) bool { return a.Prefix == b.Prefix && slices.Equal(a.NextHops, b.NextHops) }
	if !slices.EqualFunc(p.sent, p.Switch.RIB, same) {
		return fmt.Errorf("the switch holds %d routes, and is to hold %d, or with other next hops", len(p.Switch.RIB), len(p.sent))
	}
	return nil
}
