// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Forecast is what would come of a draft.
type Forecast struct {
	Changes []Change
	// Held are mass changes that would wait for an operator. What they hold is not among the changes.
	Held []Hold
	// Waiting is what would not be as asked for, and is not so already; of pools that addresses come out of, what is so already, too.
	Waiting []Explanation
	// Pending are the Services that would wait for an address, and do not yet or for another reason.
	Pending []Explanation
}

// Change is what would become of one target in the record.
type Change struct {
	Target string // service, address, route, node, pool, peer, advertisement or nodeconfig
	Name   string
	What   string
}

// Foresee tells what would come of a draft, by the plans that would be made of it one after the other, in copies of the record.
// Nobody is told of anything. What the sources ask for already, and is under way, is no part of it. Errors are about
// the draft's source, or ctx's.
func Foresee(ctx context.Context, in Input, d Draft) (Forecast, error) {
	with, held, err := d.on(in)
	if err != nil {
		return Forecast{}, err
	}
	before, plain, err := settled(ctx, in)
	if err != nil {
		return Forecast{}, err
	}
	after, out, err := settled(ctx, with)
	if err != nil {
		return Forecast{}, err
	}
	f := Forecast{Held: held, Changes: compare(before, after)}
	ofPools := ofPoolsTaken(before, after, out)
	for _, e := range out {
		if !slices.Contains(plain, e) || slices.Contains(ofPools, e) {
			f.Waiting = append(f.Waiting, e)
		}
	}
	f.Waiting = append(f.Waiting, unsent(before, after, ofPools)...)
	pairs(before, after, fsm.TableServices, func(was, is *fsm.Service) {
		if is != nil && is.Pending.Code != "" && (was == nil || was.Pending != is.Pending) {
			f.Pending = append(f.Pending, Explanation{string(fsm.TableServices), string(is.ID), is.Pending.Code, is.Pending.Text})
		}
	})
	return f, nil
}

// settleRounds bounds the plans of a forecast; plans come to rest in a few.
const settleRounds = 16

// settled is the record once a plan of the input has nothing left to propose.
func settled(ctx context.Context, in Input) (*fsm.View, []Explanation, error) {
	as, err := in.Record.Copy()
	if err != nil {
		return nil, nil, fmt.Errorf("copy the record: %w", err)
	}
	for range settleRounds {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		in.Record = as.Read()
		out := Plan(in)
		proposals := slices.Concat(out.Urgent, out.Bulk)
		if len(proposals) == 0 {
			return in.Record, out.Waiting, nil
		}
		if err := pretend(as, proposals); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("the plan does not come to rest within %d rounds", settleRounds)
}

// compare lists what differs between two records that came of one, target by target.
func compare(before, after *fsm.View) []Change {
	var out []Change
	say := func(target, name, what string, args ...any) {
		out = append(out, Change{target, name, fmt.Sprintf(what, args...)})
	}
	pairs(before, after, fsm.TableServices, func(was, is *fsm.Service) {
		switch {
		case was == nil:
			say("service", string(is.ID), "comes to be served")
		case is == nil:
			say("service", string(was.ID), "is served no more")
		case is.Deleting && !was.Deleting:
			say("service", string(is.ID), "is served no more, once its addresses are taken back")
		default:
			if what := serviceChange(was, is); what != "" {
				say("service", string(is.ID), "%s", what)
			}
		}
	})
	pairs(before, after, fsm.TableAllocations, func(was, is *fsm.Allocation) {
		had, has := was != nil && !was.Releasing, is != nil && !is.Releasing
		switch {
		case has && !had:
			say("address", is.Address.String(), "goes to Service %s%s", is.Service, outOf(is.Pool()))
		case had && !has:
			say("address", was.Address.String(), "is taken back from Service %s", was.Service)
		case has && had && was.SharingKey() != is.SharingKey():
			say("address", is.Address.String(), "is shared by Service %s under %q, not %q", is.Service, is.SharingKey(), was.SharingKey())
		}
	})
	compareAudiences(before, after, say)
	pairs(before, after, fsm.TableRoutes, func(was, is *fsm.Route) {
		r := is
		if r == nil {
			r = was
		}
		for _, n := range less(wantedNodes(is), wantedNodes(was)) {
			say("route", r.Key(), "gets node %s as a next hop", n)
		}
		for _, n := range less(wantedNodes(was), wantedNodes(is)) {
			say("route", r.Key(), "loses node %s as a next hop", n)
		}
	})
	pairs(before, after, fsm.TableNodes, func(was, is *fsm.Node) {
		switch {
		case was == nil:
			say("node", string(is.ID), "becomes known%s", notEligible(is))
		case is == nil:
			say("node", string(was.ID), "is forgotten")
		case was.Eligible != is.Eligible || was.Why != is.Why:
			say("node", string(is.ID), "%s", "is "+map[bool]string{true: "eligible", false: "no longer eligible: " + is.Why}[is.Eligible])
		case !slices.Equal(was.Addresses, is.Addresses):
			say("node", string(is.ID), "has the addresses %v, not %v", is.Addresses, was.Addresses)
		}
	})
	listed, _ := fsm.Diff(before, after, maxPlainChanges)
	targets := map[fsm.Table]string{
		fsm.TablePools: "pool", fsm.TablePeers: "peer", fsm.TableAdvertisements: "advertisement", fsm.TableNodeConfigs: "nodeconfig",
		fsm.TableL2Advertisements: "l2advertisement",
	}
	for _, c := range listed {
		// Unadvertised is nobody's object; what comes of it is told of addresses.
		if target := targets[c.Table]; target != "" && !(c.Table == fsm.TableAdvertisements && c.Key == string(fsm.Unadvertised)) {
			say(target, c.Key, "is %s", c.Change)
		}
	}
	return out
}

// pairs visits the rows of a table that either record has, by key: before is nil for one that came, after for one that went. The
// two are of different States, which share nothing.
func pairs[R interface {
	comparable
	fsm.Record
}](before, after *fsm.View, t fsm.Table, visit func(was, is R)) {
	var none R
	was, is := fsm.List[R](before, t), fsm.List[R](after, t)
	for len(was) > 0 || len(is) > 0 {
		switch {
		case len(is) == 0 || len(was) > 0 && was[0].Key() < is[0].Key():
			visit(was[0], none)
			was = was[1:]
		case len(was) == 0 || is[0].Key() < was[0].Key():
			visit(none, is[0])
			is = is[1:]
		default:
			visit(was[0], is[0])
			was, is = was[1:], is[1:]
		}
	}
}

// maxPlainChanges bounds what is told of tables whose rows are told of as a whole.
const maxPlainChanges = 1 << 20

func serviceChange(was, is *fsm.Service) string {
	var what []string
	note := func(changed bool, text string, args ...any) {
		if changed {
			what = append(what, fmt.Sprintf(text, args...))
		}
	}
	note(!slices.Equal(was.Frontends, is.Frontends), "answers on ports %s", portsText(is))
	note(was.Local != is.Local, "externalTrafficPolicy is %s", trafficPolicy(is.Local))
	note(was.AllNodes != is.AllNodes, "next hops are %s", map[bool]string{true: "all nodes", false: "the nodes of its endpoints"}[is.AllNodes])
	note(!slices.EqualFunc(was.Endpoints, is.Endpoints, sameEndpoint), "has %d endpoints, before %d", len(is.Endpoints), len(was.Endpoints))
	note(reweighed(was.Endpoints, is.Endpoints), "endpoints weigh otherwise")
	note(was.Affinity() != is.Affinity() || !slices.Equal(was.SourceRanges(), is.SourceRanges()), "other clients or another affinity")
	note(was.Scheduler() != is.Scheduler(), "endpoints are chosen %s", map[string]string{"": "by chance"}[is.Scheduler()]+is.Scheduler())
	note(!slices.Equal(was.Advertisements(), is.Advertisements()), "is chosen by other BGPAdvertisements")
	note(was.HealthCheckNodePort != is.HealthCheckNodePort, "health-check node port %d, before %d", is.HealthCheckNodePort, was.HealthCheckNodePort)
	note(was.NodePortsIPv4 != is.NodePortsIPv4 || was.NodePortsIPv6 != is.NodePortsIPv6, "node ports are served %s", nodePortsText(is))
	note(!slices.Equal(was.ClusterIPs, is.ClusterIPs), "is resolved at ClusterIPs %v, before %v", is.ClusterIPs, was.ClusterIPs)
	note(!slices.Equal(was.ByOthers(), is.ByOthers()), "is served at %v, which others gave it, before at %v", is.ByOthers(), was.ByOthers())
	note(was.InternalLocal != is.InternalLocal, "internalTrafficPolicy is %s", trafficPolicy(is.InternalLocal))
	note(was.UID != is.UID, "is another object of the same name")
	note(was.Pending.Code != "" && is.Pending.Code == "", "waits for no address any more")
	return strings.Join(what, "; ")
}

func trafficPolicy(local bool) world.TrafficPolicy {
	if local {
		return world.PolicyLocal
	}
	return world.PolicyCluster
}

// nodePortsText says where the node ports of a Service are served.
func nodePortsText(s *fsm.Service) string {
	switch {
	case s.NodePortsIPv4 && s.NodePortsIPv6:
		return "in both families"
	case s.NodePortsIPv4:
		return "in IPv4"
	case s.NodePortsIPv6:
		return "in IPv6"
	}
	return "in the families of its addresses"
}

// reweighed tells whether an endpoint that stays has another weight. Both are in order of address.
func reweighed(was, is []fsm.Endpoint) bool {
	return slices.ContainsFunc(is, func(e fsm.Endpoint) bool {
		i, stays := slices.BinarySearchFunc(was, e.Address, func(o fsm.Endpoint, a netip.Addr) int { return o.Address.Compare(a) })
		return stays && (was[i].Weight != e.Weight || was[i].Quiesced != e.Quiesced)
	})
}

func portsText(s *fsm.Service) string {
	var out []string
	for _, p := range portsOf(s) {
		out = append(out, fmt.Sprintf("%d/%s", p.Number, p.Protocol))
	}
	return strings.Join(out, ", ")
}

func outOf(pool fsm.PoolName) string {
	if pool == "" {
		return ""
	}
	return " out of pool " + string(pool)
}

func notEligible(n *fsm.Node) string {
	if n.Eligible {
		return ""
	}
	return ", not eligible: " + n.Why
}

// wantedNodes are the next hops of a route that are not being withdrawn; none for nil.
func wantedNodes(r *fsm.Route) (out []fsm.NodeID) {
	if r != nil {
		for _, h := range r.NextHops {
			if isWanted(h) {
				out = append(out, h.Node())
			}
		}
	}
	return out
}

// less lists what is in a and not in b.
func less[T comparable](a, b []T) []T {
	return slices.DeleteFunc(slices.Clone(a), func(n T) bool { return slices.Contains(b, n) })
}
