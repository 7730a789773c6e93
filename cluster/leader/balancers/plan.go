// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"cmp"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// actor is who proposes what is planned.
const actor = "leader"

// format is the first format of the record with drivers and load balancers that have no identity yet.
const format = 2

// Plan compares what the objects ask for with the record and proposes what is missing. Applying its proposals and
// planning again ends after a few rounds. What it may not do yet it explains instead.
func Plan(in Input) Result { return new(Index).Plan(in) }

// plan plans with an index of the record.
func plan(in Input, x *Index) Result {
	p := newPlanner(in, x)
	if p.group.Format < format {
		p.explainOldFormat()
		return p.out
	}
	p.putDrivers()
	p.planBalancers()
	p.heedHands()
	p.adopt()
	p.planOwners()
	p.removeBindings()
	p.proposals(p.puts)
	p.endBalancers()
	p.deleteDrivers()
	p.count()
	p.explainCrowds()
	slices.SortStableFunc(p.out.Waiting, func(a, b Explanation) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	p.out.Waiting = slices.Compact(p.out.Waiting)
	return p.out
}

// planner is one run of Plan. Its maps are for looking up; what leaves it goes by sorted lists.
type planner struct {
	in          Input
	out         Result
	group       *fsm.Group
	quarantined bool

	drivers map[world.ID]*world.Driver

	objects  []*object // in order of kind and name
	objectOf map[fsm.BalancerID]*object
	named    map[world.ID]*object // LoadBalancers
	rows     map[fsm.BalancerID]*fsm.LoadBalancer
	// recorded are the rows of LoadBalancers by the names of their objects.
	recorded map[world.ID][]*fsm.LoadBalancer

	index *Index
	// handled are the owners of bindings that somebody had a hand in.
	handled map[string]bool

	// strange are the BackendRecords of others that are to be taken over and have no binding yet.
	strange map[world.ID]*world.BackendRecord
	// awaited are the load balancers that such records are for.
	awaited  map[fsm.BalancerID]bool
	stripped map[string]bool // UIDs of objects that were seen to go

	owners      []*owner // groups, then Binds, in order of their names
	ownerOf     map[string]*owner
	pods        podIndex
	puts        []fsm.Proposal // of bindings
	crowds      []*crowd
	crowded     int // explanations in crowds
	crowdOf     map[Explanation]*crowd
	freshOrphan map[fsm.BalancerID]bool
	claimed     map[world.ID]string // names of records that this plan gives out, and to whom
}

// line is what becomes of one binding.
type line struct {
	*bound
	plan   uint64 // that all this is of
	wanted bool   // its backend is expected as the binding has it
	kept   bool   // its pod or node is not available, and stays all the same
	forced bool   // its BackendRecord was deleted by hand
	ended  bool   // this plan removes it from the record
	why    string
}

// leaving tells whether it is being deregistered.
func (l *line) leaving() bool { return l.State == fsm.BindingDeregistering }

func newPlanner(in Input, x *Index) *planner {
	if in.MayRemove == nil {
		in.MayRemove = func(world.Kind, world.ID) bool { return false }
	}
	if in.Listed == nil {
		in.Listed = func(world.Kind) bool { return false }
	}
	if in.Away == nil {
		in.Away = func(world.Kind) bool { return false }
	}
	p := &planner{
		in: in, out: Result{Counts: map[string]Counts{}}, group: in.Record.Group(),
		drivers: make(map[world.ID]*world.Driver, len(in.Drivers)), objectOf: map[fsm.BalancerID]*object{},
		named: map[world.ID]*object{}, rows: map[fsm.BalancerID]*fsm.LoadBalancer{}, recorded: map[world.ID][]*fsm.LoadBalancer{},
		index: x, handled: map[string]bool{}, strange: map[world.ID]*world.BackendRecord{},
		awaited: map[fsm.BalancerID]bool{}, stripped: map[string]bool{}, ownerOf: map[string]*owner{}, freshOrphan: map[fsm.BalancerID]bool{}, claimed: map[world.ID]string{}, crowdOf: map[Explanation]*crowd{},
	}
	x.plans++
	x.lines = append(x.lines, make([]line, x.slots-len(x.lines))...)
	p.quarantined = !p.group.Quarantine.IsZero()
	for _, d := range in.Drivers {
		p.drivers[d.ID] = d
	}
	for _, d := range in.Deleted {
		if d.How == world.ByWatch && d.UID != "" {
			p.stripped[d.UID] = true
		}
	}
	return p
}

// line is where a plan notes what becomes of a binding.
func (p *planner) line(b *bound) *line {
	l := &p.index.lines[b.slot]
	if l.plan != p.index.plans {
		*l = line{bound: b, plan: p.index.plans}
	}
	return l
}

// lineOf finds the binding of a name; nil for none.
func (p *planner) lineOf(id world.ID) *line {
	if b := p.index.named[fsm.BindingID(id.String())]; b != nil {
		return p.line(b)
	}
	return nil
}

// backendKey finds the bindings of one backend among those of its owner. What it leaves out, same compares.
type backendKey struct {
	thing string // the pod's UID, the node, or the address
	port  uint32
}

func keyOf(b fsm.Backend, address string) backendKey {
	switch b.Kind {
	case kindPod:
		return backendKey{b.UID, b.Port}
	case kindService:
		return backendKey{b.Node, b.Port}
	}
	return backendKey{thing: address}
}

// same tells whether the binding is of a backend on a load balancer, but for what its address is made from.
func (l *bound) same(balancer fsm.BalancerID, b fsm.Backend) bool {
	had := l.Backend
	return had.UID == b.UID && had.Port == b.Port && had.Kind == b.Kind && had.Name == b.Name && had.Protocol == b.Protocol && had.Node == b.Node &&
		l.Balancer == balancer
}

// lineFor finds the binding of a backend of an owner.
func (p *planner) lineFor(o *owner, u *use, b fsm.Backend, address string) *line {
	for _, had := range o.held.of[keyOf(b, address)] {
		if had.same(u.row.ID, b) {
			return p.line(had)
		}
	}
	return nil
}

// Kinds of backends.
const (
	kindPod     = "Pod"
	kindService = "Service"
	kindStatic  = "Static"
)

func splitID(text string) world.ID {
	namespace, name, _ := strings.Cut(text, "/")
	return world.ID{Namespace: namespace, Name: name}
}

func (p *planner) propose(reason string, c fsm.Command) {
	p.out.Proposals = append(p.out.Proposals, p.proposal(reason, c))
}

func (p *planner) proposals(list []fsm.Proposal) { p.out.Proposals = append(p.out.Proposals, list...) }

func (p *planner) proposal(reason string, c fsm.Command) fsm.Proposal {
	return fsm.Proposal{Actor: actor, Reason: reason, AtUnixMilli: p.in.Now.UnixMilli(), Command: c}
}

// gone tells whether a life of an object is surely over: another one has its name, it was seen to go, or it is absent
// and that may be acted on.
func (p *planner) gone(kind world.Kind, id world.ID, uid string) bool {
	now := p.present(kind, id)
	switch {
	case now != nil:
		return uid != "" && uid != now.UID
	case uid != "" && p.stripped[uid]:
		return true
	}
	return p.in.Listed(kind) && p.in.MayRemove(kind, id)
}

// kvs brings a map of an object into the form of the record.
func kvs(list []world.KV) []fsm.KV {
	if len(list) == 0 {
		return nil
	}
	out := make([]fsm.KV, len(list))
	for i, kv := range list {
		out[i] = fsm.KV(kv)
	}
	return out
}

// find looks an object up in a list that is in order of names.
func find[T any](list []*T, id world.ID, name func(*T) world.ID) *T {
	at, ok := slices.BinarySearchFunc(list, id, func(o *T, id world.ID) int { return name(o).Compare(id) })
	if !ok {
		return nil
	}
	return list[at]
}
