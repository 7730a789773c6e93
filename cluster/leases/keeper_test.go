// SPDX-License-Identifier: Apache-2.0

package leases_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/fsm"
)

// stage is a group with one leader, whose nodes renew every 100 ms unless they are silent.
type stage struct {
	*record
	t      *testing.T
	keeper *leases.Keeper
	now    time.Duration
	silent map[fsm.NodeID]bool
	links  map[fsm.NodeID][]desired.Link
	held   map[fsm.NodeID][]leases.Held
	leaves map[fsm.NodeID]bool   // those whose agents say that they end
	whys   map[netip.Addr]string // why leases ended, by address
}

// longTerms are such that the story of a lease can be told in seconds.
var longTerms = leases.Timing{Term: 3 * time.Second}

func newStage(t *testing.T, kept ...fsm.PoolName) *stage {
	s := &stage{
		record: newRecord(t, kept...), t: t, silent: map[fsm.NodeID]bool{}, links: map[fsm.NodeID][]desired.Link{},
		held: map[fsm.NodeID][]leases.Held{}, leaves: map[fsm.NodeID]bool{}, whys: map[netip.Addr]string{},
	}
	for _, n := range nodes {
		s.links[n] = []desired.Link{{Name: "eth0", Up: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("203.0.113.9/24").Masked()}}, {Name: "mgmt", Up: true}}
	}
	s.keeper = leases.NewKeeper(longTerms, 1, 0, nil)
	return s
}

func (s *stage) run(d time.Duration) {
	s.t.Helper()
	for end := s.now + d; s.now < end; s.now += 100 * time.Millisecond {
		s.step()
	}
}

// step has all nodes renew that are not silent, and the leader decide.
func (s *stage) step() {
	s.t.Helper()
	for _, n := range nodes {
		if s.silent[n] {
			continue
		}
		s.keeper.Heard(s.now, leases.Renewal{Node: n, Boot: "b0", Sent: s.now, Held: s.held[n], Links: s.links[n], Leaving: s.leaves[n]})
		grants, ok := s.keeper.Answer(s.now, s.Read(), n, "b0", s.now)
		if !ok {
			s.t.Fatalf("%s gets no answer", n)
		}
		s.held[n] = nil
		for _, g := range grants {
			s.held[n] = append(s.held[n], leases.Held{VIP: g.VIP, Fence: g.Fence})
		}
	}
	for _, step := range s.keeper.Decide(s.now, s.Read()) {
		s.commit(step.Commands...)
		if _, ends := step.Commands[0].(*fsm.EndLease); ends {
			s.whys[step.VIP] = step.Why
		}
	}
}

// holders are by the record.
func (s *stage) holders() map[netip.Addr]fsm.NodeID {
	out := map[netip.Addr]fsm.NodeID{}
	for _, l := range fsm.List[*fsm.Lease](s.Read(), fsm.TableLeases) {
		out[l.VIP] = l.Holder
	}
	return out
}

func (s *stage) of(n fsm.NodeID) (out []netip.Addr) {
	for _, vip := range vips {
		if s.holders()[vip] == n {
			out = append(out, vip)
		}
	}
	return out
}

func TestAddressesAreSpreadAndStay(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run(3 * time.Second)
	if len(s.holders()) != 0 {
		t.Fatalf("granted in the first term: %v", s.holders())
	}
	s.run(time.Second)
	for _, n := range nodes {
		if len(s.of(n)) != 1 {
			t.Fatalf("%s has %v", n, s.of(n))
		}
	}
	before := s.holders()
	lost := s.of("n2")[0]
	s.silent["n2"] = true
	s.run(2500 * time.Millisecond)
	if s.holders()[lost] != "n2" {
		t.Fatal("it was given away before its term was over")
	}
	s.run(time.Second)
	moved := s.holders()[lost]
	if moved == "n2" || moved == "" {
		t.Fatalf("%s is at %q", lost, moved)
	}
	s.silent["n2"] = false
	s.run(20 * time.Second)
	before[lost] = moved
	for vip, n := range s.holders() {
		if before[vip] != n {
			t.Errorf("%s moved from %s to %s for nothing", vip, before[vip], n)
		}
	}
}

// Clocks may run wrong by 1.5 % each: the slowest holder is done before the fastest leader takes its lease for over.
func TestTheWaitCoversClocksThatRunWrong(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run(5 * time.Second)
	last, lost := s.now-100*time.Millisecond, s.of("n1")[0]
	s.silent["n1"] = true
	for s.holders()[lost] == "n1" {
		s.run(100 * time.Millisecond)
	}
	trueTime := float64(s.now-100*time.Millisecond-last) / 1.015
	if longest := float64(3*time.Second) / 0.985; trueTime < longest {
		t.Errorf("given away after %s, its holder may use it for %s", time.Duration(trueTime), time.Duration(longest))
	}
}

func TestADeadDataLinkLosesOwnership(t *testing.T) {
	t.Parallel()
	for name, dead := range map[string]desired.Link{
		"carrier": {Name: "eth0", Prefixes: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}},
		"deaf":    {Name: "eth0", Up: true, Deaf: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.run(5 * time.Second)
			lost := s.of("n3")[0]
			s.links["n3"] = []desired.Link{dead, s.links["n3"][1]}
			s.run(500 * time.Millisecond)
			if at := s.holders()[lost]; at == "n3" || at == "" {
				t.Errorf("%s is at %q", lost, at)
			}
			// With nobody better it stays.
			for _, n := range nodes {
				s.links[n] = s.links["n3"]
			}
			before := s.holders()
			s.run(5 * time.Second)
			for vip, n := range s.holders() {
				if before[vip] != n {
					t.Errorf("%s moved to %s, whose link is as dead", vip, n)
				}
			}
		})
	}
}

// An advertisement that names interfaces which no node has: nobody answers, so that nobody holds a lease, and why is said in the words of the cause. A
// link that is only down keeps its lease. Once the name is right, all addresses have a holder again.
func TestNobodyHoldsAnAddressForWhichNoNodeHasALink(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	at := func(interfaces ...string) {
		s.commit(&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"p1"}, EveryNode: true, Interfaces: interfaces}})
	}
	at("eth0")
	s.run(5 * time.Second)
	for _, n := range nodes {
		s.links[n] = []desired.Link{{Name: "eth0"}, s.links[n][1]}
	}
	s.run(5 * time.Second)
	if got := len(s.holders()); got != len(vips) {
		t.Fatalf("%d of %d addresses have a holder while all links are down", got, len(vips))
	}
	at("eth*")
	s.run(5 * time.Second)
	if got := s.holders(); len(got) != 0 {
		t.Errorf("%v are held where no node has a link", got)
	}
	for vip, why := range s.whys {
		if !strings.Contains(why, "no link of ") || !strings.Contains(why, "spec.interfaces") {
			t.Errorf("%s was given up: %q", vip, why)
		}
	}
	if len(s.whys) != len(vips) {
		t.Errorf("said of %d", len(s.whys))
	}
	at("mgmt")
	s.run(5 * time.Second)
	if got := len(s.holders()); got != len(vips) {
		t.Errorf("%d of %d addresses have a holder", got, len(vips))
	}
}

func TestWhoDoesNotServeGivesBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run(5 * time.Second)
	vip := s.of("n1")[0]
	s.route(vip, 1)
	s.run(500 * time.Millisecond)
	if at := s.holders()[vip]; at != "n2" {
		t.Errorf("it is at %q, served at n2 only", at)
	}
	s.route(vip)
	s.run(500 * time.Millisecond)
	if at := s.holders()[vip]; at != "" {
		t.Errorf("nobody serves it, %s answers", at)
	}
}

func TestOnlyAdmittedNodesAnswerWhereTheyMay(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.commit(&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"p1"}, Nodes: []fsm.NodeID{"n2"}, Interfaces: []string{"eth0"}}})
	s.run(5 * time.Second)
	if got := s.of("n2"); !slices.Equal(got, vips) {
		t.Fatalf("n2 has %v", got)
	}
	s.keeper.Heard(s.now, leases.Renewal{Node: "n2", Boot: "b0", Sent: s.now})
	grants, _ := s.keeper.Answer(s.now, s.Read(), "n2", "b0", s.now)
	if len(grants) != 3 || !slices.Equal(grants[0].Interfaces, []string{"eth0"}) || grants[0].Keep || grants[0].Term != 3*time.Second {
		t.Errorf("told %+v", grants)
	}
	s.commit(&fsm.DeleteL2Advertisement{Name: "lan"})
	s.run(500 * time.Millisecond)
	if len(s.holders()) != 0 {
		t.Errorf("nobody asks for it, and %v answer", s.holders())
	}
}

// What is kept moves by a word only: its holder's, which comes back, or an operator's.
func TestKeptLeasesEndByWord(t *testing.T) {
	t.Parallel()
	s := newStage(t, "p1")
	s.run(5 * time.Second)
	vip := s.of("n1")[0]
	hold := func() *fsm.Hold { h, _ := fsm.Get[*fsm.Hold](s.Read(), fsm.TableHolds, "l2-n1"); return h }
	s.silent["n1"] = true
	s.run(time.Minute)
	if s.holders()[vip] != "n1" {
		t.Fatal("it moved")
	}
	if h := hold(); h == nil || !slices.Equal(h.Subjects, []string{vip.String()}) || !strings.Contains(h.Why, "n1") {
		t.Fatalf("hold %+v", h)
	}
	s.silent["n1"] = false
	s.run(time.Second)
	if hold() != nil || s.holders()[vip] != "n1" {
		t.Fatalf("it is back: %+v, %v", hold(), s.holders())
	}
	s.silent["n1"] = true
	s.run(time.Minute)
	s.commit(&fsm.ReleaseHold{ID: "l2-n1"})
	s.run(time.Second)
	if at := s.holders()[vip]; at == "n1" || at == "" || hold() != nil {
		t.Errorf("it is at %q, hold %+v", at, hold())
	}
	// What holders shall do may change: they hear of it, and the lease is another.
	s.silent["n1"] = false
	s.commit(&fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"p1"}, EveryNode: true}})
	before := s.holders()
	s.run(time.Second)
	for _, l := range fsm.List[*fsm.Lease](s.Read(), fsm.TableLeases) {
		if l.Keep || before[l.VIP] != l.Holder {
			t.Errorf("%+v", l)
		}
	}
}

// An operator's word was true when it was given: it is none about what its node does once that is back, whoever leads by then.
func TestKeptLeasesDoNotEndByAnEarlierWord(t *testing.T) {
	t.Parallel()
	s := newStage(t, "p1")
	s.run(5 * time.Second)
	vip := s.of("n1")[0]
	s.silent["n1"] = true
	s.run(time.Minute)
	s.commit(&fsm.ReleaseHold{ID: "l2-n1"})
	s.keeper = leases.NewKeeper(longTerms, 1, s.now, nil) // before the former one could act on it
	s.silent["n1"] = false
	s.step()
	uses := slices.ContainsFunc(s.held["n1"], func(h leases.Held) bool { return h.VIP == vip })
	s.silent["n1"] = true
	s.run(4 * time.Second)
	if at := s.holders()[vip]; uses && at != "n1" {
		t.Fatalf("n1 was told that it may use %s after the word, and it is at %q", vip, at)
	}
	s.silent["n1"] = false
	s.run(10 * time.Second)
	if _, ok := fsm.Get[*fsm.Hold](s.Read(), fsm.TableHolds, "l2-n1"); ok || s.holders()[vip] == "" {
		t.Errorf("it is at %q, and there is a hold: %v", s.holders()[vip], ok)
	}
}

// A lease that was ending when the record was replaced by an earlier one is used until its term is over: who is told without it may not
// have heard that.
func TestLeasesThatWereEndingAreWaitedForInAnotherLife(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run(8 * time.Second)
	vip := s.of("n2")[0]
	backup := s.backup()
	s.route(vip, 0)
	s.run(5 * time.Second)
	if at := s.holders()[vip]; at != "n1" {
		t.Fatalf("it is at %q", at)
	}
	s.route(vip, 1)
	s.step() // is told, and then it shall end
	told := s.now
	s.now += 100 * time.Millisecond
	used := s.held["n1"]
	s.step() // is told without it, and does not hear that
	s.held["n1"], s.silent["n1"] = used, true
	s.restore(backup)
	s.keeper = leases.NewKeeper(longTerms, s.Read().Group().Epoch, s.now, s.keeper)
	for s.now < told+2900*time.Millisecond {
		s.now += 100 * time.Millisecond
		s.step()
		if slices.ContainsFunc(s.held["n2"], func(h leases.Held) bool { return h.VIP == vip }) {
			t.Fatalf("n2 uses %s %s after n1 was told of it for three seconds", vip, s.now-told)
		}
	}
	s.silent["n1"] = false
	s.run(time.Second)
	if !slices.ContainsFunc(s.held["n2"], func(h leases.Held) bool { return h.VIP == vip }) {
		t.Error("n2 is not told of it for good")
	}
}

// By default an address has another holder well within a second after the last word of its former one.
func TestSilentHoldersAreSucceededWithinASecond(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.keeper = leases.NewKeeper(leases.Timing{}, 1, 0, nil)
	s.run(5 * time.Second)
	last, lost := s.now-100*time.Millisecond, s.of("n1")[0]
	s.silent["n1"] = true
	for s.step(); s.holders()[lost] == "n1" && s.now < last+time.Minute; s.step() {
		s.now = s.keeper.Due(s.now)
	}
	if took := s.now - last; took < 600*time.Millisecond || took > 630*time.Millisecond {
		t.Errorf("it moved after %s", took)
	}
}

// A node that the group does not take for up yet answers if nobody else can, within a second, and not while somebody can.
func TestANodeInHoldDownIsTheLastResort(t *testing.T) {
	t.Parallel()
	for _, liveness := range []fsm.Liveness{fsm.AgentDown, fsm.NodeDown} {
		s := newStage(t)
		s.keeper = leases.NewKeeper(leases.Timing{}, 1, 0, nil)
		for _, vip := range vips {
			s.route(vip, 0, 1)
		}
		s.commit(&fsm.SetLiveness{Node: "n1", Boot: "b0", Liveness: liveness}) // though it renews
		s.run(10 * time.Second)
		if n := len(s.of("n2")); n != len(vips) {
			t.Fatalf("%s: n2 is up and has %d addresses: %v", liveness, n, s.holders())
		}
		last := s.now - 100*time.Millisecond
		s.silent["n2"] = true
		for s.step(); len(s.of("n1")) < len(vips) && s.now < last+time.Minute; s.step() {
			s.now = s.keeper.Due(s.now)
		}
		if took := s.now - last; took > time.Second {
			t.Errorf("%s: nobody answered for %s", liveness, took)
		}
		s.silent["n2"] = false
		s.run(5 * time.Second)
		if n := len(s.of("n1")); n != len(vips) {
			t.Errorf("%s: who answers stays, and n1 has %d addresses", liveness, n)
		}
	}
}

// An agent that ends gives everything back: others answer at once, and it is granted nothing any more until it is back.
func TestWhoLeavesIsSucceededAtOnce(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string][]fsm.PoolName{"let-go": nil, "kept": {"p1"}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, kept...)
			s.run(5 * time.Second)
			vip := s.of("n1")[0]
			s.held["n1"], s.leaves["n1"] = nil, true
			s.run(200 * time.Millisecond)
			if at := s.holders()[vip]; at == "n1" || at == "" {
				t.Fatalf("it is at %q", at)
			}
			s.route(vip, 0)
			s.run(5 * time.Second)
			if at := s.holders()[vip]; at != "" {
				t.Fatalf("%s was granted it", at)
			}
			s.leaves["n1"] = false
			s.run(time.Second)
			if s.holders()[vip] != "n1" {
				t.Errorf("it is back, and %v hold", s.holders())
			}
		})
	}
}

// A renewal is not kept waiting in a new term: little may be left of the leases that it asks for.
func TestNewLeadersAnswerAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run(5 * time.Second)
	s.keeper = leases.NewKeeper(longTerms, 1, s.now, nil)
	s.keeper.Heard(s.now, leases.Renewal{Node: "n1", Boot: "b0", Sent: s.now, Held: s.held["n1"]})
	if !s.keeper.News(s.now, s.Read(), "n1") {
		t.Error("it waits for something to say")
	}
	s.keeper.Answer(s.now, s.Read(), "n1", "b0", s.now)
	s.keeper.Heard(s.now, leases.Renewal{Node: "n1", Boot: "b0", Sent: s.now + 1, Held: s.held["n1"]})
	if s.keeper.News(s.now, s.Read(), "n1") {
		t.Error("there is nothing to say, and it is said at once")
	}
}

// Leases of other terms, as an older release or another configuration grants them, are made anew with their holders.
func TestTermsOfLeasesChangeInPlace(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run(5 * time.Second)
	before := s.holders()
	s.keeper = leases.NewKeeper(leases.Timing{}, 1, s.now, nil)
	s.run(time.Second)
	for _, l := range fsm.List[*fsm.Lease](s.Read(), fsm.TableLeases) {
		if l.Term != 600*time.Millisecond || l.Holder != before[l.VIP] {
			t.Errorf("%+v, was at %s", l, before[l.VIP])
		}
	}
}

// A node of another segment answers for nobody who looks for the address.
func TestNodesInTheNetworkOfAnAddressComeFirst(t *testing.T) {
	t.Parallel()
	elsewhere := []desired.Link{{Name: "eth1", Up: true, Prefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}}
	s := newStage(t)
	near := s.links["n1"]
	s.links["n1"], s.links["n2"] = elsewhere, elsewhere
	s.run(5 * time.Second)
	if got := s.of("n3"); len(got) != len(vips) {
		t.Fatalf("n3 alone is in the network, and has %v", got)
	}
	s.links["n3"] = elsewhere
	s.links["n2"] = near
	s.run(time.Second)
	if got := s.of("n2"); len(got) != len(vips) {
		t.Errorf("n2 alone is in the network, and has %v", got)
	}
	s.links["n2"] = elsewhere
	s.run(5 * time.Second)
	if len(s.holders()) != len(vips) {
		t.Errorf("nobody is in the network: anybody may answer; held are %v", s.holders())
	}
}
