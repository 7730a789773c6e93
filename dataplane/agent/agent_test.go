// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// The whole way: committed, told, kept, carried out, acknowledged, committed.
func TestRoutedAddressIsCarriedOutAndAcknowledged(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1", Eligible: true}, &fsm.PutNodeConfig{Config: fsm.NodeConfig{
		Switches: []netip.Addr{netip.MustParseAddr("198.51.100.254")}, OutTable: 7,
	}})
	routed(t, g, "192.0.2.1")
	m := newMember(t, w, "m1", g)
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}})
	testkit.Until(t, "the address is acknowledged", acknowledged(g, "192.0.2.1/32"))
	if !n.has("192.0.2.1/32")() {
		t.Errorf("the node has %v", n.kernel.Told().Addresses())
	}
	c := n.kernel.Told().Config
	if c == nil || len(c.Switches) != 1 || c.InTable != 101 || c.OutTable != 7 || n.kernel.Told().Group != "g1" {
		t.Errorf("configuration %+v of %q", c, n.kernel.Told().Group)
	}
	// It also has the addresses that are routed elsewhere, and hears of a hop although its rules stay as they are.
	routed(t, g, "192.0.2.2")
	testkit.Until(t, "the second address is acknowledged", acknowledged(g, "192.0.2.2/32"))
	a := netip.MustParseAddr("192.0.2.3")
	g.Apply(t, &fsm.PutService{Service: fsm.Service{ID: "ns/s"}}, &fsm.Allocate{Address: a, Service: "ns/s"})
	testkit.Until(t, "the unrouted address is there", n.has("192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32"))
	g.Apply(t, &fsm.SetRoute{Prefix: fsm.HostPrefix(a), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}})
	testkit.Until(t, "a hop for known rules is acknowledged", acknowledged(g, "192.0.2.3/32"))
	// A withdrawn hop keeps its rules until it is gone.
	g.Apply(t, &fsm.SetRoute{Prefix: fsm.HostPrefix(a)}, &fsm.ReleaseAllocation{Address: a, Service: "ns/s"})
	routed(t, g, "192.0.2.4")
	testkit.Until(t, "the next one is acknowledged", acknowledged(g, "192.0.2.4/32"))
	if !n.has("192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32", "192.0.2.4/32")() {
		t.Errorf("while withdrawing: %v", n.kernel.Told().Addresses())
	}
	r, _ := fsm.Get[*fsm.Route](g.Read(), fsm.TableRoutes, "192.0.2.3/32")
	g.Apply(t, &fsm.FinishWithdrawal{Prefix: r.Prefix, Node: "n1", Address: r.NextHops[0].Address(), Since: r.NextHops[0].Since},
		&fsm.FreeAllocation{Address: a, Service: "ns/s"})
	testkit.Until(t, "the rules are gone", n.has("192.0.2.1/32", "192.0.2.2/32", "192.0.2.4/32"))
}

func TestNewBootIsRegisteredBeforeItAcknowledges(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	routed(t, g, "192.0.2.1")
	m := newMember(t, w, "m1", g)
	first := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}})
	testkit.Until(t, "the first boot acknowledged", acknowledged(g, "192.0.2.1/32"))
	first.stop()
	voided := false
	g.Change(func(k *grouptest.Knobs) {
		k.Before = func(c fsm.Command) {
			if mark, ok := c.(*fsm.Acknowledge); ok {
				n, _ := fsm.Get[*fsm.Node](g.Read(), fsm.TableNodes, "n1")
				voided = voided || n.Boot == "b2" && n.Acknowledged.IsZero()
				if mark.Marks[0].Boot != n.Boot {
					t.Errorf("boot %s acknowledges while %s is registered", mark.Marks[0].Boot, n.Boot)
				}
			}
		}
	})
	second := startNode(t, w, nodeOptions{name: "n1", boot: "b2", seeds: []string{m.api.Address}, store: first.store})
	testkit.Until(t, "the second boot acknowledged", func() bool {
		s := second.Status()
		return !s.Acknowledged.IsZero() && s.Acknowledged == s.Told && acknowledged(g, "192.0.2.1/32")()
	})
	g.Change(func(k *grouptest.Knobs) { k.Before = nil })
	if !voided {
		t.Error("the new boot did not void what the old one acknowledged")
	}
}

// A node that the cluster does not know yet gets its rules, and is registered as soon as it is known.
func TestUnknownNodeIsServedAndRegisteredLater(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	routed(t, g, "192.0.2.1")
	m := newMember(t, w, "m1", g)
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}, tuning: once}) // the member has to ask for the acknowledgement
	testkit.Until(t, "the rules are there", n.has("192.0.2.1/32"))
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	testkit.Until(t, "the address is acknowledged", acknowledged(g, "192.0.2.1/32"))
}

func TestAgentMovesOnWhenItsMemberEnds(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	one, two := newMember(t, w, "m1", g), newMember(t, w, "m2", g)
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{one.api.Address, two.api.Address}})
	testkit.Until(t, "a member is followed", func() bool { return n.Status().Member != "" })
	if n.Status().Member == two.api.Address {
		one, two = two, one
	}
	one.api.Stop()
	routed(t, g, "192.0.2.1")
	testkit.Until(t, "the other one is followed", acknowledged(g, "192.0.2.1/32"))
	if n.Status().Member != two.api.Address {
		t.Errorf("followed %s", n.Status().Member)
	}
}

// Members without quorum, and members that are behind, send their agents away; the agent keeps what it has
// rather than run back.
func TestAgentLeavesMembersThatMayBeWrong(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*grouptest.Knobs){
		"no-quorum": func(k *grouptest.Knobs) { k.Alone = time.Hour },
		"behind":    func(k *grouptest.Knobs) { k.Commit = 1 << 40 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, good, bad := grouptest.NewWorld(t), grouptest.NewGroup(t), grouptest.NewGroup(t)
			for _, g := range []*grouptest.Group{good, bad} {
				g.Apply(t, &fsm.PutNode{ID: "n1"})
				routed(t, g, "192.0.2.1")
			}
			wrong := newMember(t, w, "m1", bad)
			n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{wrong.api.Address}})
			testkit.Until(t, "the first member is followed", acknowledged(bad, "192.0.2.1/32"))
			bad.Change(spoil)
			testkit.Until(t, "it is left", func() bool { return n.Status().Member == "" })
			n.stop()
			good.Skip(100)
			routed(t, good, "192.0.2.2")
			right := newMember(t, w, "m2", good)
			n = startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{wrong.api.Address, right.api.Address}, store: n.store})
			testkit.Until(t, "the other is followed", func() bool { return n.Status().Member == right.api.Address })
		})
	}
}

// A member that is older than what the agent has is not followed, however long it is the only one (S13).
func TestRevisionNeverRunsBack(t *testing.T) {
	t.Parallel()
	w, ahead, late := grouptest.NewWorld(t), grouptest.NewGroup(t), grouptest.NewGroup(t)
	for _, g := range []*grouptest.Group{ahead, late} {
		g.Apply(t, &fsm.PutNode{ID: "n1"})
	}
	ahead.Skip(50)
	routed(t, ahead, "192.0.2.1")
	m := newMember(t, w, "m1", ahead)
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}})
	testkit.Until(t, "the newest is carried out", acknowledged(ahead, "192.0.2.1/32"))
	at := n.Status().Applied
	n.stop()

	old := newMember(t, w, "m2", late)
	n = startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{old.api.Address}, store: n.store, kernel: n.kernel})
	testkit.Until(t, "it is carried out again from disk", func() bool { return n.Status().Applied == at })
	routed(t, late, "192.0.2.2") // still older
	for range 20 {
		if s := n.Status(); s.Told != at || s.Member != "" {
			t.Fatalf("status %+v, was at %s", s, at)
		}
		time.Sleep(5 * time.Millisecond)
	}
	// Once the member knows as much, it is followed, with what it has.
	late.Skip(100)
	routed(t, late, "192.0.2.3")
	testkit.Until(t, "the member is followed", n.has("192.0.2.2/32", "192.0.2.3/32"))
}

// After a restart the state is there before any member answers, and nothing is sent twice.
// Most of what there is to tell are Services. A node that translates nothing is not told of them, and is as soon as it does.
func TestNodeThatUsesAddressesOnlyIsToldNothingElse(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	routed(t, g, "192.0.2.1")
	m := newMember(t, w, "m1", g)
	store := &memory{}
	for i, only := range []bool{true, false, true} {
		n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}, store: store, addressesOnly: only})
		next := fmt.Sprintf("192.0.2.%d", i+2)
		routed(t, g, next)
		testkit.Until(t, "the next address is acknowledged", acknowledged(g, next+"/32"))
		want := i + 2
		if only {
			want = 0
		}
		testkit.Until(t, fmt.Sprintf("it knows %d Services", want), func() bool { return len(n.kernel.Told().Services()) == want })
		n.stop()
	}
}

func TestRestartKeepsTheState(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	routed(t, g, "192.0.2.1")
	m := newMember(t, w, "m1", g)
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}})
	testkit.Until(t, "carried out", acknowledged(g, "192.0.2.1/32"))
	n.stop()
	m.api.Stop()

	n = startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}, store: n.store})
	testkit.Until(t, "carried out from disk", n.has("192.0.2.1/32"))
	n.stop()

	n.store.set(func(s *memory) { s.data[40] ^= 1 })
	n = startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}, store: n.store})
	for range 20 {
		if n.kernel.applied != 0 {
			t.Fatal("a damaged state was carried out")
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestWhatCannotBeKeptIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	routed(t, g, "192.0.2.1")
	m := newMember(t, w, "m1", g)
	store := &memory{full: errors.New("no space left on device")}
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}, store: store})
	testkit.Until(t, "it was told", func() bool { return !n.Status().Told.IsZero() })
	for range 20 {
		if !n.Status().Applied.IsZero() || acknowledged(g, "192.0.2.1/32")() {
			t.Fatal("carried out, and not kept")
		}
		time.Sleep(2 * time.Millisecond)
	}
	store.set(func(s *memory) { s.full = nil })
	testkit.Until(t, "there is room again", acknowledged(g, "192.0.2.1/32"))
}

func TestWhatFailedIsTriedAgainAndSaid(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	routed(t, g, "192.0.2.1")
	m := newMember(t, w, "m1", g)
	k := &kernel{t: t, refuse: errors.New("no permission")}
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m.api.Address}, kernel: k})
	testkit.Until(t, "it was told", func() bool { return !n.Status().Told.IsZero() })
	routed(t, g, "192.0.2.2")
	failing := netip.MustParsePrefix("192.0.2.2/32")
	k.set(func(k *kernel) { k.refuse, k.failing = nil, []netip.Prefix{failing} })
	testkit.Until(t, "the one that works is acknowledged", acknowledged(g, "192.0.2.1/32"))
	testkit.Until(t, "the failed one is in the record", func() bool {
		n, _ := fsm.Get[*fsm.Node](g.Read(), fsm.TableNodes, "n1")
		return len(n.Failed) == 1 && n.Failed[0] == failing
	})
	if acknowledged(g, "192.0.2.2/32")() {
		t.Error("a failed address counts as acknowledged")
	}
	k.set(func(k *kernel) { k.failing = nil })
	testkit.Until(t, "it works at last", acknowledged(g, "192.0.2.2/32"))
}

// Every member hears the heartbeats, those too that the agent had to learn of.
func TestHeartbeatsReachAllMembers(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	one, two := newMember(t, w, "m1", g), newMember(t, w, "m2", g)
	report := func(server, address string) fsm.Command {
		return &fsm.ReportMember{Server: fsm.ServerID(server), Name: server, API: address, Format: fsm.NewestFormat, Run: "r"}
	}
	g.Apply(t, report("m1", one.api.Address))
	startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{one.api.Address}})
	heard := func(m *member) func() bool {
		begin := time.Now()
		return func() bool {
			list, since := m.service.Beats()
			return len(list) == 1 && list[0].Node == "n1" && list[0].Boot == "b1" && list[0].At.After(begin) && since.Before(begin)
		}
	}
	testkit.Until(t, "the seed hears", heard(one))
	g.Apply(t, report("m2", two.api.Address))
	testkit.Until(t, "the new member hears", heard(two))
	g.Apply(t, &fsm.RemoveMember{Server: "m2"})
	testkit.Until(t, "the removed one no longer does", func() bool {
		before, _ := two.service.Beats()
		time.Sleep(3 * quick().Heartbeat)
		after, _ := two.service.Beats()
		return before[0].At.Equal(after[0].At)
	})
	testkit.Until(t, "the seed still hears", heard(one))
}

func TestAgentOfAnotherNodeIsRefused(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	m := newMember(t, w, "m1", g)
	client := w.Client(t, pki.Agent, "n2", m.api.Address)
	if _, err := grouptest.Beat(t.Context(), client.Agent, &fairleadv1.HeartbeatRequest{Node: "n1", Boot: "b"}); err == nil {
		t.Error("n2 beats for n1")
	}
	if _, err := client.Agent.Acknowledge(t.Context(), &fairleadv1.AcknowledgeRequest{Node: "n1", Boot: "b", Revision: &fairleadv1.Revision{Epoch: 1, Index: 1}}); err == nil {
		t.Error("n2 acknowledges for n1")
	}
	stream, err := client.Agent.Sync(t.Context(), &fairleadv1.SyncRequest{Node: "n1", Boot: "b"})
	if err == nil && stream.Receive() {
		t.Error("n2 gets what n1 shall have")
	}
	if list, _ := m.service.Beats(); len(list) != 0 {
		t.Errorf("heard of %v", list)
	}
}

// K44: of a burst of changes the last one is carried out, and few of the others; also while an address fails.
// Rule: K44.
func TestBurstsAreCarriedOutAsFewStates(t *testing.T) {
	t.Parallel()
	const between = 100 * time.Millisecond
	w := grouptest.NewWorld(t)
	g := grouptest.NewGroup(t)
	m := newMember(t, w, "m1", g)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	for _, failing := range [][]netip.Prefix{nil, {netip.MustParsePrefix("192.0.2.1/32")}} {
		began := time.Now()
		n := startNode(t, w, nodeOptions{
			name: "n1", boot: "b1", seeds: []string{m.api.Address}, kernel: &kernel{t: t, failing: failing},
			tuning: func(t *agent.Tuning) { t.Between = between },
		})
		testkit.Until(t, "something is carried out", func() bool { return !n.Status().Applied.IsZero() })
		for i := range 30 {
			g.Apply(t, &fsm.PutNode{ID: "n1", Zone: fmt.Sprint("z", i)})
			time.Sleep(10 * time.Millisecond)
		}
		testkit.Until(t, "the last is carried out", func() bool { s := n.Status(); return s.Applied == s.Told && n.kernel.Told().Zone == "z29" })
		n.stop()
		n.kernel.set(func(k *kernel) {
			if most := int(time.Since(began)/between) + 2; k.applied > most {
				t.Errorf("%d states within %v, want one every %v", k.applied, time.Since(began), between)
			}
		})
	}
}
