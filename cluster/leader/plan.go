// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// actor is who proposes what is planned.
const actor = "leader"

// asShown is why the record of a Service becomes another one. Reasons are kept in histories: those of what there is very much of name
// nothing that the record itself does, so that there is one copy of them.
const asShown = "as its source shows it"

// Plan compares what the sources ask for with the record and proposes what is missing, in an order in which it may
// be applied. It is deterministic, and proposes nothing once the record is as it shall be: applying its proposals
// and planning again ends after a few rounds. What it may not do yet it explains instead.
func Plan(in Input) Result {
	p := newPlanner(in)
	p.run()
	return p.out
}

// run makes every decision, once.
func (p *planner) run() {
	p.explainPassed()
	p.planPools()
	p.planPeers()
	p.planAdvertisements()
	p.planL2()
	p.planNodeConfigs()
	p.planNodes()
	p.withholdFromPools()
	p.gatherServices()
	p.grantAddresses()
	p.settleNodePorts()
	p.settleClusterIPs()
	p.settleByOthers()
	p.explainPolicies()
	p.explainWithheld()
	p.emitServices()
	p.out.Bulk = append(p.out.Bulk, p.selecting...)
	p.planRoutes()
	p.planWithdrawals()
	p.freeAddresses()
	p.deleteServices()
	p.deleteNodes()
	p.planMembers()
	p.endQuarantine()
	p.observeViews()
	slices.SortStableFunc(p.out.Waiting, func(a, b Explanation) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
}

// planner is one run of Plan. Its maps are for looking up; what leaves it goes by sorted lists.
type planner struct {
	in   Input
	seen *merged
	out  Result

	settings    fsm.Settings
	format      uint32
	quarantined bool

	advertisements []*fsm.Advertisement // of the record; nil: not looked up yet
	selecting      []fsm.Proposal       // advertisements that come to choose Services: once these say which of them choose them

	pools     []*poolPlan    // in the order in which addresses are given out of them
	survivors []fsm.PoolName // that Services have addresses of, and that are gone; nil: not looked for yet
	nodes     map[fsm.NodeID]*nodePlan
	nodeIDs   []fsm.NodeID // in order
	nodeWith  map[netip.Addr]fsm.NodeID
	// drainedServices are those that an operator drains.
	drainedServices map[string]bool
	// moves are where operators moved Services.
	moves    map[fsm.ServiceID]fsm.NodeID
	peerWith map[netip.Addr]fsm.PeerName
	services []*wish // by id
	routes   []*fsm.Route
	routeOf  map[netip.Addr]*fsm.Route
	// allocations of the record, by address, then owner; and by owner.
	allocations []*fsm.Allocation
	ownersOf    map[netip.Addr][]*fsm.Allocation
	heldBy      map[fsm.ServiceID][]*fsm.Allocation

	claimed []netip.Addr // in order
	claims  map[netip.Addr][]*claim
	// shared is where Services of one key may meet; nil until somebody looks. closing is why one could share no address yet.
	shared   map[sharedIn]*sharers
	closing  map[unshared]string
	reserved *reserved // what the cluster itself is reached by; nil until somebody looks
	// used counts the addresses of pools by namespace, as far as the plan got; only where something limits them.
	used     map[string]int
	released map[allocationID]bool // given up, by the record or by this plan
	freed    map[allocationID]bool // taken off the record by this plan
	unrouted map[netip.Addr]bool   // addresses whose last next hop this plan takes off the record

	listed []fsm.Endpoint // where listEndpoints lists
}

type allocationID struct {
	address netip.Addr
	service fsm.ServiceID
}

func newPlanner(in Input) *planner {
	group := in.Record.Group()
	allocations := fsm.List[*fsm.Allocation](in.Record, fsm.TableAllocations)
	routes := fsm.List[*fsm.Route](in.Record, fsm.TableRoutes)
	p := &planner{
		in: in, seen: merge(in.Views, in.Record), settings: group.Settings, format: group.Format, quarantined: !group.Quarantine.IsZero(),
		routes: routes, routeOf: make(map[netip.Addr]*fsm.Route, len(routes)),
		allocations: allocations,
		ownersOf:    runs(allocations, func(a *fsm.Allocation) netip.Addr { return a.Address }, netip.Addr.Compare),
		heldBy:      runs(allocations, func(a *fsm.Allocation) fsm.ServiceID { return a.Service }, cmp.Compare),
		claims:      make(map[netip.Addr][]*claim, len(allocations)),
		released:    map[allocationID]bool{}, freed: map[allocationID]bool{},
		drainedServices: drainsOf(in.Record, fsm.DrainService), moves: movesOf(in.Record),
		unrouted: map[netip.Addr]bool{}, peerWith: map[netip.Addr]fsm.PeerName{},
	}
	for _, r := range p.routes {
		p.routeOf[r.Prefix.Addr()] = r
	}
	for _, a := range p.allocations {
		if a.Releasing {
			p.released[allocationID{a.Address, a.Service}] = true
		}
	}
	return p
}

// runs groups a list by a key. The groups keep the list's order, and share memory.
func runs[T any, K comparable](list []T, key func(T) K, compare func(a, b K) int) map[K][]T {
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b T) int { return compare(key(a), key(b)) })
	out := make(map[K][]T, len(list))
	for from := 0; from < len(sorted); {
		to := from + 1
		for to < len(sorted) && key(sorted[to]) == key(sorted[from]) {
			to++
		}
		out[key(sorted[from])] = sorted[from:to:to]
		from = to
	}
	return out
}

// propose adds a command that may wait its turn.
func (p *planner) propose(reason string, c fsm.Command) {
	mend(c)
	p.out.Bulk = append(p.out.Bulk, p.proposal(reason, c))
}

// proposeUrgent adds a command that goes before all others.
func (p *planner) proposeUrgent(reason string, c fsm.Command) {
	p.out.Urgent = append(p.out.Urgent, p.proposal(reason, c))
}

func (p *planner) proposal(reason string, c fsm.Command) fsm.Proposal {
	return fsm.Proposal{Actor: actor, Reason: reason, AtUnixMilli: p.in.Now.UnixMilli(), Command: c}
}

func (p *planner) explain(kind fsm.Table, name, code, text string) {
	p.out.Waiting = append(p.out.Waiting, Explanation{Kind: string(kind), Name: name, Code: code, Text: text})
}

// explainAbsent says why something that no source shows stays. Where nothing of its kind is seen at all, that is said
// once, with the source.
func (p *planner) explainAbsent(table fsm.Table, kind world.Kind, id world.ID) {
	if !p.seen.sees(kind) {
		return
	}
	why := p.seen.why(kind, id)
	if kind == world.KindEndpointSlice {
		why.Text = "endpoints that no EndpointSlice lists stay: " + why.Text
	}
	p.explain(table, id.String(), string(why.Code), why.Text)
}

// Codes of explanations that are not codes of fsm.Pending.
const (
	WaitsForEvidence   = "evidence"    // absent from the sources, but not surely gone
	WaitsForOperator   = "held"        // absent with many others, which an operator has to release
	WaitsForHolder     = "l2-holder"   // a node still answers for the address on its segment
	WaitsForMember     = "member"      // a member has not reported that it withdrew a path
	WaitsForRoute      = "route"       // paths may still lead there
	WaitsForQuarantine = "quarantine"  // the record was restored and the outside is not adopted yet
	WaitsForOverlap    = "overlap"     // two objects claim the same addresses, or a pool those of the cluster
	WaitsForNextHop    = "no-next-hop" // no node can carry the address now
	WaitsForLiveness   = "last-hop"    // its nodes are silent, but there are no others
	WaitsForOther      = "drain-last"  // its nodes are ones that new flows shall go past, but there are no others
	WaitsForMove       = "move"        // the node that an operator moved it to cannot serve it
	WaitsForRules      = "rules"       // no new node acknowledged the address yet
	WaitsForMend       = "invalid"     // an object cannot be carried out as it is
	WaitsForAggregate  = "aggregate"   // addresses are announced one by one that an advertisement wants as one
	WaitsForPolicy     = "policy"      // what is there from before would not be given now: by an AddressPolicy, or since it is the cluster's
	WaitsForDrain      = "drain"       // a pool that is being emptied is not empty yet
	// WaitsForAdvertisement is a pool that no BGPAdvertisement is about, and whose addresses go nowhere for it, or to more than it seems.
	WaitsForAdvertisement = "unadvertised"
)
