// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// shift is an installation that LBCF and Fairlead have by turns: one group of fixed addresses on one load balancer. What is
// registered there it knows from the calls alone.
type shift struct {
	*cluster
	wanted     []string
	registered map[string]bool
	objects    int      // how many BackendRecords there were
	heard      int      // calls that registered counts
	needless   []string // calls that registered anew what was, or took it off while it was wanted
}

func newShift(t failer) *shift {
	s := &shift{cluster: newCluster(t), registered: map[string]bool{}}
	s.object(strings.Fields("driver shop/d"))
	s.object(strings.Fields("lb shop/edge driver=d spec=vip:1 created=vip:1 synced finalized"))
	return s
}

var shiftAddresses = []string{"192.0.2.1:80", "192.0.2.2:80", "192.0.2.3:80"}

func (s *shift) want(addresses []string) {
	s.wanted = addresses
	s.object([]string{"group", "shop/web", "lbs=edge", "static=" + strings.Join(addresses, ",")})
}

// recordOf is the object of an address, or nil.
func (s *shift) recordOf(address string) *world.BackendRecord {
	id := world.ID{Namespace: "shop", Name: StaticRecord("edge", "web", address)}
	for _, r := range s.records {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// makeRecord has somebody make the object of an address: LBCF, which marks nothing, or we.
func (s *shift) makeRecord(address, mark string) *world.BackendRecord {
	s.objects++
	s.object(strings.Fields(fmt.Sprintf("record shop/%s owner=BackendGroup/web lb=edge driver=d info=vip:1 static=%s finalized mirror=%s uid=o%d made=%d",
		StaticRecord("edge", "web", address), address, mark, s.objects, s.objects)))
	return s.recordOf(address)
}

// lbcf does what LBCF does until it has nothing left to do: it registers what has no object, and what has one that does not
// say that it is; it deregisters what is not wanted. Where it is stopped in the middle, it leaves the rest.
func (s *shift) lbcf(steps int) {
	s.takeDown()
	for _, address := range shiftAddresses {
		wanted, r := slices.Contains(s.wanted, address), s.recordOf(address)
		for ; steps > 0; steps-- {
			switch {
			case r != nil && (r.Deleting || !wanted) && !r.Deleting:
				r.Deleting = true
			case r != nil && r.Deleting:
				if r.Address != "" {
					delete(s.registered, address)
				}
				s.remove(world.KindBackendRecord, r.ID)
				r = nil
			case r == nil && wanted:
				r = s.makeRecord(address, "")
			case r != nil && r.Address == "":
				r.Address = address
			case r != nil && !r.Registered:
				r.Registered, s.registered[address] = true, true
			}
		}
		if steps == 0 {
			steps = 8 // it was stopped at one address; the others are as they shall be
		}
	}
}

// takeDown has those objects go that say that they are ours and whose binding is over: whoever goes back waits for that
// (docs/migrate-lbcf.md).
func (s *shift) takeDown() {
	v := s.record.state.Read()
	for _, r := range slices.Clone(s.records) {
		b, lives := fsm.Get[*fsm.Binding](v, fsm.TableBindings, r.ID.String())
		if r.Mirror != "" && !(lives && mirrors(r.Mirror, r.UID, b)) {
			s.remove(world.KindBackendRecord, r.ID)
		}
	}
}

// mirror does what k8s/mirror does about some of the objects.
func (s *shift) mirror(addresses []string) {
	v := s.record.state.Read()
	for _, address := range addresses {
		id := world.ID{Namespace: "shop", Name: StaticRecord("edge", "web", address)}
		b, lives := fsm.Get[*fsm.Binding](v, fsm.TableBindings, id.String())
		r := s.recordOf(address)
		if r == nil {
			if lives && b.State != fsm.BindingDeregistering {
				r = s.makeRecord(address, "test/"+b.UID)
				r.Address, r.Registered = b.Address, b.Registered
			}
			continue
		}
		ours := r.Mirror != "" || v.TraceOf(fsm.BindingID(id.String()), originOf(r)) == fsm.TraceTaken
		switch {
		case lives && mirrors(r.Mirror, r.UID, b) && b.State == fsm.BindingDeregistering:
			r.Mirror, r.Deleting = "test/"+b.UID, true
		case lives && mirrors(r.Mirror, r.UID, b):
			r.Address, r.Registered = b.Address, b.Registered
		case lives && ours && !r.Deleting && b.State != fsm.BindingDeregistering:
			r.Mirror, r.Address, r.Registered = "test/"+b.UID, b.Address, b.Registered
		case ours:
			s.remove(world.KindBackendRecord, r.ID)
		}
	}
}

// hear counts what drivers were told.
func (s *shift) hear() {
	for _, call := range s.record.calls[s.heard:] {
		what, address, _ := strings.Cut(strings.TrimSuffix(call, " on shop/edge"), " ")
		if s.registered[address] && (what == "ensure" || slices.Contains(s.wanted, address)) {
			s.needless = append(s.needless, call)
		}
		switch what {
		case "ensure":
			s.registered[address] = true
		case "deregister":
			delete(s.registered, address)
		}
	}
	s.heard = len(s.record.calls)
}

// plan plans once, and tells whether there was nothing to do.
func (s *shift) plan() (rests bool) {
	in := s.input()
	in.Record, in.BackendRecords = s.record.state.Read(), anew(in.BackendRecords) // sources never change what they gave
	proposals := s.record.plan(in).Proposals
	for i, o := range s.record.apply(proposals) {
		if err := o.Err(); err != nil {
			s.t.Fatalf("%s: refused: %v", spell(proposals[i]), err)
		}
	}
	return len(proposals) == 0
}

func (s *shift) work() (rests bool) {
	worked := s.record.work()
	s.hear()
	return !worked
}

// fairlead has plans, drivers and mirror take turns until all rest.
func (s *shift) fairlead() {
	for range 24 {
		planned, worked := s.plan(), s.work()
		for range 2 { // what it takes down it makes anew
			s.mirror(shiftAddresses)
		}
		if planned && worked {
			return
		}
	}
	s.t.Fatalf("plans and drivers do not come to rest: %v", s.record.calls)
}

// interrupted is a while after which Fairlead is killed: the mirror came to few objects, drivers may not have been called.
func (s *shift) interrupted(t *rapid.T) {
	s.want(drawAddresses(t, "meanwhile"))
	for range rapid.IntRange(1, 4).Draw(t, "plans") {
		s.plan()
		if rapid.Bool().Draw(t, "drivers are called") {
			s.work()
		}
		s.mirror(rapid.SampledFrom([][]string{nil, nil, shiftAddresses[:1], shiftAddresses}).Draw(t, "mirrored"))
	}
}

func drawAddresses(t *rapid.T, what string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(shiftAddresses), 0, 3, rapid.ID).Draw(t, what)
}

// Section 13, INV-6: however often an installation goes back to LBCF and forward again, whatever the mirror did not get to
// while the API server was away, and whichever graves made way: what is wanted is registered in the end, and nothing else, as
// long as it is what LBCF knew to be wanted when it was stopped (docs/migrate-lbcf.md). Nothing that LBCF left registered is registered anew or taken off, as long as nothing of ours was left behind when it took over.
func TestPropertyBackToLBCFAndForwardAgain(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newShift(t)
		s.want(drawAddresses(t, "at first"))
		s.lbcf(24)
		s.record.must(&fsm.PutSettings{Settings: fsm.Settings{GraveLimit: rapid.SampledFrom([]uint32{0, 1, 2}).Draw(t, "graves")}})
		stale := false
		for range rapid.IntRange(1, 6).Draw(t, "turns") {
			s.needless = nil
			cut := rapid.SampledFrom([]int{24, 24, 1, 2, 3, 4}).Draw(t, "LBCF is stopped after")
			if rapid.Bool().Draw(t, "LBCF has it") {
				for range rapid.IntRange(0, 2).Draw(t, "changes under LBCF") {
					s.want(drawAddresses(t, "of LBCF"))
					s.lbcf(24)
				}
				s.want(drawAddresses(t, "of LBCF at last"))
				s.lbcf(cut)
			} else {
				stale, cut = false, 0
				s.want(drawAddresses(t, "of ours"))
			}
			s.fairlead()
			s.agree(t)
			if cut == 24 && !stale && len(s.needless) > 0 {
				t.Fatalf("LBCF left all as it shall be, and drivers are called: %v", s.needless)
			}
			s.shows(t)
			for range rapid.IntRange(0, 3).Draw(t, "changes while the API server is away") {
				stale = true
				s.interrupted(t)
			}
		}
	})
}

func (s *shift) agree(t *rapid.T) {
	want := slices.Sorted(slices.Values(s.wanted))
	if have := slices.Sorted(maps.Keys(s.registered)); !slices.Equal(have, want) {
		t.Fatalf("registered is %v, wanted %v; calls %v", have, want, s.record.calls)
	}
}

// shows checks that what is wanted has a BackendRecord of its binding, and nothing else has one.
func (s *shift) shows(t *rapid.T) {
	for _, address := range shiftAddresses {
		r, wanted := s.recordOf(address), slices.Contains(s.wanted, address)
		if (r != nil) != wanted {
			t.Fatalf("%s is wanted: %t; its BackendRecord: %v", address, wanted, r)
		}
		if b, _ := fsm.Get[*fsm.Binding](s.record.state.Read(), fsm.TableBindings, "shop/"+StaticRecord("edge", "web", address)); wanted && !mirrors(r.Mirror, r.UID, b) {
			t.Fatalf("the BackendRecord of %s is %s of %q, and its binding %s", address, r.UID, r.Mirror, b.UID)
		}
	}
}
