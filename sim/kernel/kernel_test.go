// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel"
	"fairlead.io/fairlead/sim/kernel/message"
	"fairlead.io/fairlead/sim/network"
)

// oneNode is a node and a process on it that asks what a test tells it.
type oneNode struct {
	t       *testing.T
	world   *engine.World
	network *network.Network
	node    *kernel.Kernel
	conn    *network.Conn
	decoder message.Decoder
	answers []message.Answer
	events  []message.Event
	refused []string
	foreign []string
	ended   bool
}

func newOneNode(t *testing.T, seed uint64) *oneNode {
	w := engine.New(seed)
	l := &oneNode{t: t, world: w, network: network.New(w, network.Options{})}
	w.Hear(func(e event.Stamped) {
		switch e := e.Event.(type) {
		case event.Refused:
			l.refused = append(l.refused, e.What+": "+e.Why)
		case event.Foreign:
			l.foreign = append(l.foreign, e.What)
		}
	})
	l.node = kernel.New(w, l.network, kernel.Options{
		Node: "n1", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.21/24")}, Gateways: []netip.Addr{netip.MustParseAddr("192.0.2.1")},
	})
	l.conn = l.dial("n1")
	return l
}

func (l *oneNode) dial(from string) *network.Conn {
	c := l.network.Dial(from, "n1", kernel.Port, nil)
	c.Handle(func(b []byte) {
		l.decoder.Add(b)
		for {
			var a message.Answer
			if ok, err := l.decoder.Next(&a); err != nil {
				l.t.Fatal(err)
			} else if !ok {
				return
			}
			if a.Event != nil {
				l.events = append(l.events, *a.Event)
			} else {
				l.answers = append(l.answers, a)
			}
		}
	}, func(bool) { l.ended = true })
	return c
}

func (l *oneNode) pass(d time.Duration) {
	if err := l.world.Run(l.world.Now() + d); err != nil {
		l.t.Fatal(err)
	}
}

// ask makes a call.
func (l *oneNode) ask(r message.Request) message.Answer {
	l.t.Helper()
	l.answers = nil
	l.conn.Send(message.Encode(r))
	l.pass(time.Millisecond)
	if len(l.answers) != 1 {
		l.t.Fatalf("%d answers", len(l.answers))
	}
	return l.answers[0]
}

var (
	vip  = netip.MustParsePrefix("198.51.100.1/32")
	rule = message.Rule{Priority: 30101, To: vip, Table: 101, Protocol: message.Protocol}
	way  = message.Route{Table: 101, To: netip.MustParsePrefix("0.0.0.0/0"), Local: true, Device: "lo", Protocol: message.Protocol}
)

// Each refusal has the errno that Linux gives; what no agent should ever ask for is published, too.
func TestTheKernelRefusesWhatLinuxRefuses(t *testing.T) {
	with := func(r message.Route, change func(*message.Route)) *message.Route {
		change(&r)
		return &r
	}
	other := rule
	other.Protocol = 4
	strange := rule
	strange.V6 = true
	table := func(ops ...message.Op) message.Request { return message.Request{Table: ops} }
	add := message.Op{Do: "add-table", Table: message.NATTable}
	set := message.Op{Do: "add-set", Table: message.NATTable, Set: &message.Set{Name: "s", Key: []message.Type{message.Address4}}}
	chain := message.Op{Do: "add-chain", Table: message.NATTable, Chain: &message.Chain{Name: "c"}}
	rules := func(steps ...message.Step) message.Op {
		return message.Op{Do: "add-rules", Table: message.NATTable, Chain: &message.Chain{Name: "c", Rules: [][]message.Step{steps}, Tags: []string{"t"}}}
	}
	element := func(do, key string) message.Op {
		return message.Op{Do: do, Table: message.NATTable, Elements: []message.Element{{Set: "s", Key: key}}}
	}
	for name, c := range map[string]struct {
		before, ask message.Request
		errno       string
		published   string
	}{
		"rule-twice":         {message.Request{Rule: &rule}, message.Request{Rule: &other}, "EEXIST", ""},
		"no-rule":            {ask: message.Request{Rule: &rule, Delete: true}, errno: "ENOENT"},
		"rule-family":        {ask: message.Request{Rule: &strange}, errno: "EINVAL", published: "another family"},
		"route-twice":        {message.Request{Route: &way}, message.Request{Route: &way}, "EEXIST", ""},
		"no-route":           {ask: message.Request{Route: &way, Delete: true}, errno: "ESRCH"},
		"route-host-bits":    {ask: message.Request{Route: with(way, func(r *message.Route) { r.To = netip.MustParsePrefix("192.0.2.1/24") })}, errno: "EINVAL", published: "behind the mask"},
		"no-device":          {ask: message.Request{Route: with(way, func(r *message.Route) { r.Device = "eth9" })}, errno: "ENODEV"},
		"gateway-off-link":   {ask: message.Request{Route: with(way, func(r *message.Route) { r.Gateway = netip.MustParseAddr("203.0.113.1") })}, errno: "ENETUNREACH"},
		"foreign-source":     {ask: message.Request{Route: with(way, func(r *message.Route) { r.Source = netip.MustParseAddr("192.0.2.99") })}, errno: "EINVAL"},
		"nothing":            {errno: "EINVAL", published: "asks for nothing"},
		"no-table":           {ask: table(set), errno: "ENOENT"},
		"set-twice":          {table(add, set), table(set), "EEXIST", ""},
		"no-element":         {table(add, set), table(element("delete-elements", "c6336401")), "ENOENT", ""},
		"element-size":       {table(add, set), table(element("add-elements", "c63364")), "EINVAL", "its key is not 4 bytes"},
		"unwritten-register": {table(add, set, chain), table(rules(message.Step{Do: "member", Set: "s"})), "EINVAL", "reads or writes what it cannot"},
		"unknown-step":       {table(add, chain), table(rules(message.Step{Do: "hope"})), "EINVAL", "unknown step"},
		"dangling-jump":      {table(add, chain), table(rules(message.Step{Do: "verdict", Is: "goto d"})), "EINVAL", "which is not there"},
		"chain-in-use": {table(add, chain, rules(message.Step{Do: "verdict", Is: "drop"})),
			table(message.Op{Do: "delete-chain", Table: message.NATTable, Chain: &message.Chain{Name: "c"}}), "EBUSY", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newOneNode(t, 1)
			if name != "nothing" && (c.before.Rule != nil || c.before.Route != nil || c.before.Table != nil) {
				if a := l.ask(c.before); a.Error != "" {
					t.Fatalf("before: %s, %v", a.Error, l.refused)
				}
			}
			if a := l.ask(c.ask); a.Error != c.errno {
				t.Errorf("errno %q, not %q", a.Error, c.errno)
			}
			if got := strings.Join(l.refused, "; "); (got != "") != (c.published != "") || !strings.Contains(got, c.published) {
				t.Errorf("published %q, not %q", got, c.published)
			}
		})
	}
}

// A transaction of which one part is refused changes nothing.
func TestATransactionIsWholeOrNotThere(t *testing.T) {
	l := newOneNode(t, 1)
	add := message.Op{Do: "add-table", Table: message.NATTable}
	set := func(name string) message.Op {
		return message.Op{Do: "add-set", Table: message.NATTable, Set: &message.Set{Name: name, Key: []message.Type{message.Address4}}}
	}
	l.ask(message.Request{Table: []message.Op{add, set("one")}})
	if a := l.ask(message.Request{Table: []message.Op{set("two"), set("one")}}); a.Error != "EEXIST" {
		t.Fatalf("errno %q", a.Error)
	}
	if a := l.ask(message.Request{Dump: &message.Dump{Table: message.NATTable}}); len(a.Table.Sets) != 1 {
		t.Errorf("sets %v", a.Table.Sets)
	}
}

// What is not ours is seen to be touched, by an agent and not by others; watchers hear of either.
func TestChangesOfWhatIsNotOursAreSeen(t *testing.T) {
	l := newOneNode(t, 1)
	l.ask(message.Request{Watch: true})
	theirs := rule
	theirs.Protocol, theirs.Priority = 4, 100
	if errno := l.node.Change(message.Request{Rule: &theirs}); errno != "" || len(l.foreign) > 0 {
		t.Fatalf("%q, %v", errno, l.foreign)
	}
	route := way
	route.Protocol = 4
	l.node.Change(message.Request{Route: &route})
	l.conn = l.dial("n1")
	l.ask(message.Request{Rule: &theirs, Delete: true})
	l.ask(message.Request{Route: &way, Replace: true})
	l.ask(message.Request{Table: []message.Op{{Do: "add-table", Table: "somebody"}}})
	if len(l.foreign) != 3 {
		t.Errorf("foreign: %v", l.foreign)
	}
	own := slices.DeleteFunc(slices.Clone(l.events), func(e message.Event) bool { return !e.Own })
	if len(l.events) != 6 || len(own) != 4 {
		t.Errorf("%d events, %d of ours: %+v", len(l.events), len(own), l.events)
	}
}

func TestOnlyProcessesOfTheNodeReachItsKernel(t *testing.T) {
	l := newOneNode(t, 1)
	l.dial("n2")
	l.pass(10 * time.Millisecond)
	if !l.ended {
		t.Error("n2 reached the kernel of n1")
	}
}

// Faults and boot ids are of the seed.
func TestEqualSeedsDrawEqualBootsAndFaults(t *testing.T) {
	run := func(seed uint64) (out []string) {
		l := newOneNode(t, seed)
		l.node.Fail(kernel.Fault{Errno: "ENOBUFS", Share: 0.5})
		for i := range uint32(20) {
			r := rule
			r.Priority += i
			out = append(out, l.ask(message.Request{Rule: &r}).Error)
		}
		return append(out, l.node.Boot(), l.node.Meddle())
	}
	if a, b := run(3), run(3); !slices.Equal(a, b) {
		t.Errorf("%v and %v", a, b)
	}
	if slices.Equal(run(3), run(4)) {
		t.Error("another seed draws the same")
	}
}

func BenchmarkOneChangeAmongHundredAddresses(b *testing.B) {
	w := engine.New(1)
	n := network.New(w, network.Options{})
	k := kernel.New(w, n, kernel.Options{Node: "n1", Addresses: []netip.Prefix{netip.MustParsePrefix("192.0.2.21/24")}})
	a := vip.Addr()
	for range 100 {
		a = a.Next()
		k.Change(message.Request{Rule: &message.Rule{Priority: 30101, To: netip.PrefixFrom(a, 32), Table: 101, Protocol: message.Protocol}})
	}
	k.Change(message.Request{Route: &way})
	for b.Loop() {
		k.Change(message.Request{Rule: &rule})
		k.Change(message.Request{Rule: &rule, Delete: true})
	}
}

// Of rules with one priority, packets meet those first that were added first, as Linux has it.
func TestRulesOfOnePriorityKeepTheOrderInWhichTheyWereAdded(t *testing.T) {
	l := newOneNode(t, 1)
	var got []uint32
	for _, r := range []message.Rule{
		{Priority: 100, To: vip, Table: 202}, {Priority: 200, Table: 7}, {Priority: 100, To: vip, Table: 101}, {Priority: 50, Table: 9},
	} {
		if a := l.ask(message.Request{Rule: &r}); a.Error != "" {
			t.Fatal(a.Error)
		}
	}
	for _, r := range l.ask(message.Request{Dump: &message.Dump{}}).Rules {
		got = append(got, r.Table)
	}
	if !slices.Equal(got, []uint32{9, 202, 101, 7, 254, 254}) {
		t.Errorf("tables in the order of rules: %d", got)
	}
}
