// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/spelling"
)

// ServiceReasons is what the plan makes of one Service, and why.
type ServiceReasons struct {
	ID fsm.ServiceID
	// Seen says that a source shows it, and Recorded that the record holds it.
	Seen, Recorded bool
	// Ours is why it is not served; zero if it is.
	Ours Reason
	// Moved is who moved it to a node, when and why; zero if nobody did.
	Moved Reason
	// Pending is what it would wait for.
	Pending fsm.Pending
	// Addresses are those that it has or shall have, in order.
	Addresses []AddressReasons
	// Waiting is what is not as the sources ask for: of the Service, of its addresses and of their routes.
	Waiting []Explanation
	// Problems are what the sources could not make of its objects, and of pools where it lacks an address.
	Problems []world.Problem
}

// AddressReasons is an address of a Service, where it comes from, and what becomes of each node for it.
type AddressReasons struct {
	Address netip.Addr
	Pool    fsm.PoolName
	From    Reason
	// Key is what Services that share it agreed on, and Shared the others that shall own it.
	Key    string
	Shared []fsm.ServiceID
	Nodes  []NodeReason
}

// Explained is a plan that was made to be asked about. Nothing of it is proposed.
type Explained struct{ p *planner }

// Explain plans as Plan does, from the same input, and keeps what its decisions come from. Without views it tells what
// the record alone says.
func Explain(in Input) *Explained {
	p := newPlanner(in)
	p.run()
	return &Explained{p}
}

// Services lists the Services that the sources or the record know, in order.
func (x *Explained) Services() []fsm.ServiceID {
	var out []fsm.ServiceID
	for _, s := range x.p.services {
		out = append(out, s.id)
	}
	for _, w := range x.p.seen.services {
		out = append(out, fsm.ServiceID(w.ID.String()))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Claimants lists the Services that have an address, shall have it or ask for it, in order.
func (x *Explained) Claimants(a netip.Addr) []fsm.ServiceID {
	var out []fsm.ServiceID
	for _, h := range x.p.ownersOf[a] {
		out = append(out, h.Service)
	}
	for _, s := range x.p.services {
		if s.claimed(a) || slices.Contains(s.typed(), a) {
			out = append(out, s.id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// WhoseAddress tells whose an address is that no Service has, as the end of a sentence.
func (x *Explained) WhoseAddress(a netip.Addr) string {
	if node, ok := x.p.nodeWith[a]; ok {
		return "it is the address of node " + string(node)
	}
	if whose := x.p.ofCluster(a); whose != "" {
		return "it is " + whose
	}
	if pool := x.p.poolWith(a); pool != nil {
		return "it is free, in pool " + string(pool.name)
	}
	return "it is in no pool"
}

// Service tells of one Service; false if neither the sources nor the record know it.
func (x *Explained) Service(id fsm.ServiceID) (ServiceReasons, bool) {
	p, out := x.p, ServiceReasons{ID: id}
	w := p.seen.find(idOf(id))
	s := p.wishOf(id)
	if w == nil && s == nil {
		return out, false
	}
	out.Seen = w != nil
	if w != nil {
		out.Ours = p.notOurs(w)
	}
	if out.Ours.Code == "" {
		out.Ours = deletion(w, s)
	}
	if s != nil {
		out.Recorded, out.Pending = s.have != nil, s.next.Pending
		out.Addresses = p.addressReasons(s)
	}
	out.Moved = movedBy(p.in.Record, id)
	out.Waiting = p.waitingFor(&out)
	out.Problems = x.Problems(func(of world.ID) bool { return of == idOf(id) })
	if code := out.Pending.Code; code == PendingNoPool || code == PendingExhausted || code == PendingOutside {
		out.Problems = append(out.Problems, x.unusablePools()...)
	}
	return out, true
}

// deletion tells that a Service goes, as a source shows it and as the plan has it; zero if it does not.
func deletion(w *world.Service, s *wish) Reason {
	switch {
	case s != nil && s.going:
		return Reason{Deleting, "it is being deleted; its addresses are taken back"}
	case s == nil && w.Deleting: // none is begun with any more
		return Reason{Deleting, "it is being deleted, and has no address"}
	}
	return Reason{}
}

// Problems lists what sources cannot use, as it is written, of Services that are meant: also of those that they cannot use at all.
func (x *Explained) Problems(meant func(world.ID) bool) []world.Problem {
	return x.problems(func(p *world.Problem) bool { return p.Object.Kind == world.KindService && meant(p.Object.ID) })
}

// unusablePools lists what keeps pools from being used at all: one of them may have what a Service lacks.
func (x *Explained) unusablePools() []world.Problem {
	return x.problems(func(p *world.Problem) bool { return p.Object.Kind == world.KindPool && p.Severity == world.Failed })
}

func (x *Explained) problems(meant func(*world.Problem) bool) (out []world.Problem) {
	for _, a := range x.p.seen.views {
		for _, problem := range a.World.Problems {
			if meant(&problem) {
				out = append(out, problem)
			}
		}
	}
	return out
}

// Lagging names the members whose withdrawal of a hop is waited for.
func (x *Explained) Lagging(h fsm.NextHop) []string {
	_, lagging := x.p.notWithdrawn(h, fsm.List[*fsm.Member](x.p.in.Record, fsm.TableMembers))
	return lagging
}

// HeldByNode tells whether the own speaker of a hop's node is waited for.
func (x *Explained) HeldByNode(h fsm.NextHop) bool {
	_, held := x.p.heldByNode(h)
	return held
}

// Record is what was planned from.
func (x *Explained) Record() *fsm.View { return x.p.in.Record }

func (m *merged) find(id world.ID) *world.Service {
	i, ok := slices.BinarySearchFunc(m.services, id, func(s *world.Service, id world.ID) int { return s.ID.Compare(id) })
	if !ok {
		return nil
	}
	return m.services[i]
}

func (p *planner) wishOf(id fsm.ServiceID) *wish {
	i, ok := slices.BinarySearchFunc(p.services, id, func(s *wish, id fsm.ServiceID) int { return cmp.Compare(s.id, id) })
	if !ok {
		return nil
	}
	return p.services[i]
}

// addressReasons tells of the addresses that a Service shall have, and of those that it still holds.
func (p *planner) addressReasons(s *wish) []AddressReasons {
	var out []AddressReasons
	for _, c := range s.claims {
		r := AddressReasons{Address: c.address, Pool: c.pool, Key: c.key, From: c.origin(), Nodes: p.nodeReasons(c.address)}
		for _, other := range p.claims[c.address] {
			if other.owner != s {
				r.Shared = append(r.Shared, other.owner.id)
			}
		}
		slices.Sort(r.Shared)
		out = append(out, r)
	}
	for _, h := range p.heldBy[s.id] {
		if !s.claimed(h.Address) {
			out = append(out, AddressReasons{
				Address: h.Address, Pool: h.Pool(), Key: h.SharingKey(), Nodes: p.nodeReasons(h.Address),
				From: Reason{FromReleased, "the Service gave it up; nobody else gets it until no path to it can be left"},
			})
		}
	}
	slices.SortStableFunc(out, func(a, b AddressReasons) int { return a.Address.Compare(b.Address) })
	return out
}

// origin tells where the address of a claim comes from.
func (c *claim) origin() Reason {
	pool := "pool " + string(c.pool)
	switch c.from {
	case FromExternal:
		return Reason{c.from, "the Service names it in spec.externalIPs"}
	case FromRequested:
		return Reason{c.from, "the Service asks for it (spec.loadBalancerIP or annotation); it is of " + pool}
	case FromReturning:
		return Reason{c.from, "it had it before, and takes it back from " + pool}
	case FromShared:
		return Reason{c.from, "Services of its sharing key have it; it is of " + pool + ofAskedPool(c.owner.seen)}
	case FromPool:
		return Reason{c.from, "the lowest free one of " + pool + ofAskedPool(c.owner.seen)}
	}
	return Reason{FromPoolEarlier, "given out of " + pool + " earlier, and kept" + ofAskedPool(c.owner.seen)}
}

func ofAskedPool(w *world.Service) string {
	if w == nil || w.Extras().Pool == "" {
		return ""
	}
	return "; the Service asks for that pool by annotation"
}

// typedFrom is the origin of an address by what the Service names.
func typedFrom(s *fsm.Service, a netip.Addr, otherwise Code) Code {
	switch {
	case slices.Contains(s.External(), a):
		return FromExternal
	case slices.Contains(s.Requested(), a):
		return FromRequested
	}
	return otherwise
}

// waitingFor picks what the plan explains about a Service, its addresses and their routes, and about whom these are announced to.
func (p *planner) waitingFor(s *ServiceReasons) []Explanation {
	about := map[[2]string]bool{{string(fsm.TableServices), string(s.ID)}: true}
	for _, a := range s.Addresses {
		about[[2]string{string(fsm.TableRoutes), fsm.HostPrefix(a.Address).String()}] = true
		for _, h := range p.ownersOf[a.Address] {
			about[[2]string{string(fsm.TableAllocations), h.Key()}] = true
		}
	}
	var out []Explanation
	for _, ad := range fsm.List[*fsm.Advertisement](p.in.Record, fsm.TableAdvertisements) {
		about[[2]string{string(fsm.TableAdvertisements), string(ad.Name)}] = slices.ContainsFunc(s.Addresses, func(a AddressReasons) bool {
			return slices.ContainsFunc(p.claims[a.Address], func(c *claim) bool { return ad.OfPool(c.pool) && ad.Chooses(c.owner.announcedBy()) })
		})
	}
	for _, e := range p.out.Waiting {
		peer := e.Kind == string(fsm.TablePeers) && len(s.Addresses) > 0 // by default each hears of all addresses
		if (peer || about[[2]string{e.Kind, e.Name}]) && e.Code != WaitsForAggregate {
			out = append(out, e)
		}
	}
	for _, a := range s.Addresses {
		if e, is := p.announcedApart(a.Address); is {
			out = append(out, e)
		}
	}
	return slices.CompactFunc(out, func(a, b Explanation) bool { return a == b })
}

// Near lists up to three names that somebody may have meant, the likeliest first.
func (x *Explained) Near(id fsm.ServiceID) []fsm.ServiceID {
	type guess struct {
		id    fsm.ServiceID
		apart int
	}
	var guesses []guess
	want := idOf(id)
	for _, have := range x.Services() {
		name := idOf(have).Name
		apart := spelling.Distance(want.Name, name)
		if near := apart <= 1+len(want.Name)/3; near || want.Name != "" && strings.Contains(name, want.Name) {
			if idOf(have).Namespace != want.Namespace {
				apart++
			}
			guesses = append(guesses, guess{have, apart})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return cmp.Compare(a.apart, b.apart) })
	var out []fsm.ServiceID
	for _, g := range guesses[:min(few, len(guesses))] {
		out = append(out, g.id)
	}
	return out
}
