// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/osrg/gobgp/v4/api"

	"fairlead.io/fairlead/dataplane/bgp"
)

const (
	demotedSet = "fairlead-demoted-peers"
	demote     = "fairlead-demote"
	importOwn  = "fairlead-import-own"
	everyMED   = "fairlead-every-med"
	globalRIB  = "global"
)

// Unnumbered peers are on one link with us, and with none of the next hops of paths. We give ourselves as the next hop, by our
// link-local address, for IPv4 too.
const (
	unnumberedSet = "fairlead-unnumbered-peers"
	selfAsNextHop = "fairlead-next-hop-self"
	linkLocal     = "fe80::/10"
)

// nobody stands in the set of demoted peers when there is none: GoBGP takes an empty set for all neighbours.
const nobody = "255.255.255.255/32"

// installPolicies puts the policies in force: what peers announce is refused, and demoted peers are sent demoted paths.
// It does so in one step, so that no path is ever exported under half of them.
func (s *Speaker) installPolicies(ctx context.Context, demoted []netip.Addr) error {
	terms, sets := s.terms.policy()
	accept := api.RouteAction_ROUTE_ACTION_ACCEPT
	err := s.server.SetPolicies(ctx, &api.SetPoliciesRequest{
		DefinedSets: append(sets, neighborSet(demotedSet, demoted), &api.DefinedSet{
			DefinedType: api.DefinedType_DEFINED_TYPE_NEIGHBOR, Name: unnumberedSet, List: []string{linkLocal},
		}),
		Policies: []*api.Policy{terms, {
			Name:       everyMED,
			Statements: []*api.Statement{addMED(1), addMED(-1)},
		}, {
			Name: selfAsNextHop,
			Statements: []*api.Statement{{
				Name:       selfAsNextHop,
				Conditions: &api.Conditions{NeighborSet: &api.MatchSet{Type: api.MatchSet_TYPE_ANY, Name: unnumberedSet}},
				Actions:    &api.Actions{Nexthop: &api.NexthopAction{Self: true}},
			}},
		}, {
			Name: importOwn,
			Statements: []*api.Statement{{
				Name:       importOwn,
				Conditions: &api.Conditions{RouteType: api.Conditions_ROUTE_TYPE_LOCAL},
				Actions:    &api.Actions{RouteAction: accept},
			}},
		}, {
			Name: demote,
			Statements: []*api.Statement{{
				Name:       demote,
				Conditions: &api.Conditions{NeighborSet: &api.MatchSet{Type: api.MatchSet_TYPE_ANY, Name: demotedSet}},
				Actions: &api.Actions{
					RouteAction: accept,
					Med:         &api.MedAction{Type: api.MedAction_TYPE_MOD, Value: int64(bgp.DemotionMED)},
					LocalPref:   &api.LocalPrefAction{Value: bgp.DemotedLocalPref}, // GoBGP sends it to iBGP peers only
				},
			}},
		}},
	})
	if err != nil {
		return fmt.Errorf("set policies: %w", err)
	}
	return nil
}

// addMED adds to the MED of each path; one that has none gets one. Paths in the table have none where it is 0, which takes less room, and
// what is sent of them has one always. GoBGP takes adding 0 for setting it to 0.
func addMED(n int64) *api.Statement {
	return &api.Statement{
		Name: fmt.Sprintf("%s%+d", everyMED, n), Actions: &api.Actions{Med: &api.MedAction{Type: api.MedAction_TYPE_MOD, Value: n}},
	}
}

// neighborSet is a set of neighbours that is never empty.
func neighborSet(name string, peers []netip.Addr) *api.DefinedSet {
	list := []string{nobody}
	for _, a := range peers {
		list = append(list, netip.PrefixFrom(a, a.BitLen()).String())
	}
	return &api.DefinedSet{DefinedType: api.DefinedType_DEFINED_TYPE_NEIGHBOR, Name: name, List: list}
}

// assignPolicies names the policies for each direction, once; installPolicies changes what they do.
func (s *Speaker) assignPolicies(ctx context.Context) error {
	for _, a := range []*api.PolicyAssignment{
		{
			Name: globalRIB, Direction: api.PolicyDirection_POLICY_DIRECTION_IMPORT, DefaultAction: api.RouteAction_ROUTE_ACTION_REJECT,
			Policies: []*api.Policy{{Name: importOwn}},
		},
		{
			Name: globalRIB, Direction: api.PolicyDirection_POLICY_DIRECTION_EXPORT, DefaultAction: api.RouteAction_ROUTE_ACTION_ACCEPT,
			Policies: []*api.Policy{{Name: everyMED}, {Name: selfAsNextHop}, {Name: exportTerms}, {Name: demote}},
		},
	} {
		if err := s.server.SetPolicyAssignment(ctx, &api.SetPolicyAssignmentRequest{Assignment: a}); err != nil {
			return fmt.Errorf("assign policy %s: %w", a.Policies[0].Name, err)
		}
	}
	return nil
}

// listDemoted reads back which peers are demoted.
func (s *Speaker) listDemoted(ctx context.Context) ([]netip.Addr, error) {
	var out []netip.Addr
	var failed error
	req := &api.ListDefinedSetRequest{DefinedType: api.DefinedType_DEFINED_TYPE_NEIGHBOR, Name: demotedSet}
	err := s.server.ListDefinedSet(ctx, req, func(d *api.DefinedSet) {
		for _, entry := range d.GetList() {
			if entry == nobody {
				continue
			}
			p, err := netip.ParsePrefix(entry)
			if err != nil {
				failed = fmt.Errorf("demoted peer %q: %w", entry, err)
				return
			}
			out = append(out, s.zoned(p.Addr()))
		}
	})
	if err == nil {
		err = failed
	}
	return out, err
}
