// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/internal/testkit"
	guest "fairlead.io/fairlead/sim/guest/kernel"
	"fairlead.io/fairlead/sim/kernel"
	"fairlead.io/fairlead/sim/kernel/message"
)

// drawServices draws Services over few addresses, no address in two.
func drawServices(t *rapid.T, label string) (out []desired.Service) {
	free := []netip.Addr{vip(false, 1), vip(false, 2), vip(false, 3), vip(true, 1), vip(true, 2)}
	for _, name := range []string{"a/x", "a/y"} {
		n := rapid.IntRange(0, min(3, len(free))).Draw(t, label+" addresses of "+name)
		if n == 0 {
			continue
		}
		out = append(out, service(name, rapid.Bool().Draw(t, "local"), rapid.IntRange(0, 3).Draw(t, "endpoints"), free[:n]...))
		free = free[rapid.IntRange(n, len(free)).Draw(t, "gap"):]
	}
	return out
}

// drawForeign draws rules and routes of others, some of which stand where ours would.
func drawForeign(t *rapid.T) (out []message.Request) {
	for range rapid.IntRange(0, 4).Draw(t, "foreign") {
		v6 := rapid.Bool().Draw(t, "v6")
		a := vip(v6, rapid.ByteRange(1, 4).Draw(t, "about"))
		p := netip.PrefixFrom(a, a.BitLen())
		switch rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			out = append(out, message.Request{Rule: &message.Rule{
				V6: v6, Priority: rapid.SampledFrom([]uint32{100, 30101, 31000}).Draw(t, "priority"), To: p, Table: 77, Protocol: 4,
			}})
		case 1:
			out = append(out, message.Request{Route: &message.Route{
				Table: rapid.SampledFrom([]uint32{77, 101}).Draw(t, "table"), To: p, Device: "eth0", Protocol: 4,
				Metric: rapid.SampledFrom([]uint32{0, 50}).Draw(t, "metric"),
			}})
		case 2:
			out = append(out, message.Request{Table: []message.Op{{Do: "add-table", Table: "somebody"}}})
		}
	}
	return out
}

// From whatever state, with rules and routes of others, damage and an earlier state of ours, Apply has the kernel steer
// exactly the wanted addresses, but for those that it says failed; it touches nothing of others.
func TestAfterApplyTheKernelSteersExactlyWhatIsWanted(t *testing.T) {
	testkit.Check(t, func(r *rapid.T) {
		before, foreign := drawServices(r, "before"), drawForeign(r)
		want := drawServices(r, "wanted")
		damage := rapid.IntRange(0, 3).Draw(r, "damage")
		restart := rapid.Bool().Draw(r, "restart")
		rulesMax := rapid.SampledFrom([]int{1, 256}).Draw(r, "rules at most")
		wrong := ""
		inLab(t, 1, func(l *lab) {
			one := l.start(rulesMax)
			if _, err := one.apply(state(r, before...)); err != nil {
				wrong = err.Error()
				return
			}
			for _, f := range foreign {
				l.somebody(f)
			}
			for range damage {
				l.Do(func() { l.node.Meddle() })
			}
			if restart || damage > 0 || len(foreign) > 0 { // else nobody has told it of changes
				one.end()
				one = l.start(rulesMax)
			}
			failed, err := one.apply(state(r, want...))
			if err != nil {
				wrong = err.Error()
				return
			}
			found, err := one.steer.Found(l.t.Context())
			for _, a := range addresses(want) {
				if err == nil && !slices.Contains(failed, a) && !slices.ContainsFunc(found, func(f desired.Address) bool { return f.Prefix.Addr() == a }) {
					wrong += a.String() + " is not found again; "
				}
			}
			expected := slices.DeleteFunc(addresses(want), func(a netip.Addr) bool { return slices.Contains(failed, a) })
			got := slices.DeleteFunc(l.steered(), func(a netip.Addr) bool { return slices.Contains(failed, a) })
			if !slices.Equal(got, expected) {
				wrong += "steered " + text(got) + ", wanted " + text(expected) + ", failed " + text(failed)
			}
			for _, a := range failed {
				if !inTheWay(foreign, a) {
					wrong += a.String() + " failed, and nothing of others is in its way"
				}
			}
			one.end()
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}

// inTheWay tells whether others' rules or routes are in an address's way: a route in our table, a rule where ours are, or
// one in front of them that leads to a table with a route.
func inTheWay(foreign []message.Request, a netip.Addr) bool {
	rule, route := map[uint32]bool{}, map[uint32]bool{} // by priority, by table
	for _, f := range foreign {
		switch {
		case f.Rule != nil && f.Rule.To.Contains(a):
			rule[f.Rule.Priority] = true
		case f.Route != nil && f.Route.To.Contains(a):
			route[f.Route.Table] = true
		}
	}
	return route[101] || rule[30101] || rule[100] && route[77]
}

func text(list []netip.Addr) string {
	var out []string
	for _, a := range list {
		out = append(out, a.String())
	}
	return "[" + strings.Join(out, " ") + "]"
}

func (l *lab) deliver(p kernel.Packet) (endpoint netip.AddrPort, ok bool, why string) {
	l.Do(func() { endpoint, ok, why = l.node.Deliver(p) })
	return endpoint, ok, why
}

// A flow of a Service whose choice is consistent meets the endpoint that it met before the node's table was made anew.
func TestFlowsMeetTheSameEndpointAgain(t *testing.T) {
	inLab(t, 1, func(l *lab) {
		p := l.start(256)
		want := state(l.t, service("alike/x", false, 3, vip(false, 1), vip(true, 1)))
		met := map[netip.AddrPort]bool{}
		var before []netip.AddrPort
		for round := range 2 {
			if _, err := p.apply(want); err != nil {
				l.t.Fatal(err)
			}
			for i := range 60 {
				packet := kernel.Packet{Source: client4, Destination: vip(false, 1), Protocol: 6, Port: 80, Hash: uint64(i)}
				if i%2 == 1 {
					packet.Source, packet.Destination = client6, vip(true, 1)
				}
				endpoint, ok, why := l.deliver(packet)
				switch {
				case !ok:
					l.t.Fatal(why)
				case round == 0:
					before = append(before, endpoint)
					met[endpoint] = true
				case endpoint != before[i]:
					l.t.Errorf("flow %d: %s, was %s", i, endpoint, before[i])
				}
			}
			l.somebody(message.Request{Table: []message.Op{{Do: "delete-table", Table: nat.TableName}}})
			p.end()
			p = l.start(256)
		}
		if len(met) != 6 {
			l.t.Errorf("flows met %v", met)
		}
		p.end()
	})
}

// Packets to a service port reach the endpoints that may get them, and all of them get some; others are refused.
func TestPacketsReachTheEndpoints(t *testing.T) {
	inLab(t, 1, func(l *lab) {
		p := l.start(256)
		if _, err := p.apply(state(l.t, service("a/x", false, 3, vip(false, 1), vip(true, 1)), service("a/y", true, 2, vip(false, 2)),
			service("a/z", false, 0, vip(false, 3)))); err != nil {
			l.t.Fatal(err)
		}
		seen := map[string]int{}
		for hash := range uint64(300) {
			for _, to := range []netip.Addr{vip(false, 1), vip(true, 1), vip(false, 2)} {
				from := client4
				if to.Is6() {
					from = client6
				}
				e, ok, why := l.deliver(kernel.Packet{Source: from, Destination: to, Protocol: 6, Port: 80, Hash: hash})
				if !ok {
					l.t.Fatalf("%s: %s", to, why)
				}
				seen[to.String()+" "+e.String()]++
			}
		}
		for _, want := range []string{
			"198.51.100.1 10.244.1.1:8080", "198.51.100.1 10.244.1.2:8080", "198.51.100.1 10.244.1.3:8080",
			"2001:db8:e1::1 [2001:db8:f::1]:8080", "2001:db8:e1::1 [2001:db8:f::2]:8080", "2001:db8:e1::1 [2001:db8:f::3]:8080",
			"198.51.100.2 10.244.1.1:8080", // the only one on this node
		} {
			if seen[want] < 60 {
				l.t.Errorf("%s got %d packets", want, seen[want])
			}
			delete(seen, want)
		}
		if len(seen) > 0 {
			l.t.Errorf("packets went to %v", seen)
		}
		for name, c := range map[string]kernel.Packet{
			"the filter refuses the port": {Source: client4, Destination: vip(false, 1), Protocol: 6, Port: 81},
			"not translated: refused":     {Source: client4, Destination: vip(false, 3), Protocol: 6, Port: 80},
			"not steered":                 {Source: client4, Destination: vip(false, 9), Protocol: 6, Port: 80},
		} {
			if _, ok, why := l.deliver(c); ok || !strings.HasPrefix(why, name) {
				l.t.Errorf("%s: ok %t, %q", name, ok, why)
			}
		}
		p.end()
	})
}

// K2: packets to a node port reach the endpoints that may get them at the node's own addresses of the ranges, as long as
// the Service is there; ports of the node's programs are not ours.
// Rule: K2.
func TestPacketsToNodePortsReachTheEndpoints(t *testing.T) {
	inLab(t, 1, func(l *lab) {
		p := l.start(256)
		x, y := service("a/x", false, 3, vip(false, 1), vip(true, 1)), service("a/y", true, 2, vip(false, 2))
		x.Frontends[0].NodePort, y.Frontends[0].NodePort = 30080, 30081
		if _, err := p.apply(state(l.t, x, y)); err != nil {
			l.t.Fatal(err)
		}
		node4, node6 := netip.MustParseAddr("192.0.2.21"), netip.MustParseAddr("2001:db8:a::21")
		seen := map[string]int{}
		for hash := range uint64(300) {
			for _, port := range []uint16{30080, 30081} {
				e, ok, why := l.deliver(kernel.Packet{Source: client4, Destination: node4, Protocol: 6, Port: port, Hash: hash})
				if !ok {
					l.t.Fatalf("%d: %s", port, why)
				}
				seen[e.String()]++
			}
		}
		if len(seen) != 3 || seen["10.244.1.2:8080"] < 60 || seen["10.244.1.3:8080"] < 60 || seen["10.244.1.1:8080"] < 360 {
			l.t.Errorf("packets went to %v", seen)
		}
		for _, c := range []kernel.Packet{
			{Source: client4, Destination: node4, Protocol: 17, Port: 30080}, {Source: client4, Destination: node4, Protocol: 6, Port: 22},
			{Source: client6, Destination: node6, Protocol: 6, Port: 30080}, // no range of this family
		} {
			if _, ok, why := l.deliver(c); ok || why != "not translated: passed" {
				l.t.Errorf("%+v: ok %t, %q", c, ok, why)
			}
		}
		if _, err := p.apply(state(l.t, y)); err != nil {
			l.t.Fatal(err)
		}
		if _, ok, why := l.deliver(kernel.Packet{Source: client4, Destination: node4, Protocol: 6, Port: 30080}); ok || why != "not translated: passed" {
			l.t.Errorf("after the Service went: ok %t, %q", ok, why)
		}
		p.end()
	})
}

// What somebody takes away is back within a second, as long as the agent runs; and within another one after the kernel refused that.
func TestDamageIsRepaired(t *testing.T) {
	testkit.Check(t, func(r *rapid.T) {
		seed, times := rapid.Uint64().Draw(r, "seed"), rapid.IntRange(1, 4).Draw(r, "times")
		refused := rapid.SampledFrom([]float64{0, 0, 0.5, 1}).Draw(r, "refused")
		errno := rapid.SampledFrom([]string{"ENOBUFS", "EBUSY"}).Draw(r, "errno")
		wrong := ""
		inLab(t, seed, func(l *lab) {
			want := []desired.Service{service("a/x", false, 2, vip(false, 1), vip(true, 1)), service("a/y", false, 1, vip(false, 2))}
			p := l.start(256)
			ctx, cancel := context.WithCancel(l.t.Context())
			ended := make(chan error, 2)
			if _, err := p.apply(state(r, want...)); err != nil {
				wrong = err.Error()
			}
			go func() { ended <- p.steer.Run(ctx) }()
			go func() { ended <- p.nat.Run(ctx) }()
			time.Sleep(time.Second)
			var what []string
			heal := func() {}
			l.Do(func() {
				if refused > 0 {
					heal = l.node.Fail(kernel.Fault{Errno: errno, Share: refused})
				}
				for range times {
					what = append(what, l.node.Meddle())
				}
			})
			time.Sleep(time.Second)
			if l.Do(heal); refused > 0 {
				time.Sleep(1100 * time.Millisecond)
			}
			if got := l.steered(); !slices.Equal(got, addresses(want)) {
				wrong += "steered " + text(got) + " a second after these went: " + strings.Join(what, "; ")
			}
			cancel()
			for range 2 {
				if err := <-ended; !errors.Is(err, context.Canceled) {
					wrong += "run: " + err.Error()
				}
			}
			p.end()
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}

// A reboot empties the kernel and draws another boot id; what is applied after it is there again.
func TestARebootEmptiesTheKernel(t *testing.T) {
	inLab(t, 1, func(l *lab) {
		want := service("a/x", false, 1, vip(false, 1))
		p := l.start(256)
		if _, err := p.apply(state(l.t, want)); err != nil {
			l.t.Fatal(err)
		}
		boot, err := guest.Open(l.Process("n1").Dial, "n1").Boot(l.t.Context())
		if err != nil {
			l.t.Fatal(err)
		}
		p.end()
		l.Do(l.node.Down)
		if _, ok, why := l.deliver(kernel.Packet{Source: client4, Destination: vip(false, 1), Protocol: 6, Port: 80}); ok || why != "the node has no power" {
			l.t.Errorf("ok %t, %q", ok, why)
		}
		l.Do(l.node.Up)
		again, err := guest.Open(l.Process("n1").Dial, "n1").Boot(l.t.Context())
		if err != nil || boot == again || len(l.steered()) != 0 {
			l.t.Errorf("boot ids %q and %q, steered %v, %v", boot, again, l.steered(), err)
		}
		p = l.start(256)
		if _, err := p.apply(state(l.t, want)); err != nil || !slices.Equal(l.steered(), want.Addresses) {
			l.t.Errorf("steered %v, %v", l.steered(), err)
		}
		p.end()
	})
}

// A kernel that fails some calls is told again, until all is there.
func TestFailedCallsAreRepeated(t *testing.T) {
	inLab(t, 1, func(l *lab) {
		want := []desired.Service{service("a/x", false, 1, vip(false, 1), vip(true, 1))}
		p := l.start(256)
		var heal func()
		l.Do(func() { heal = l.node.Fail(kernel.Fault{Errno: "EBUSY", Share: 0.4}) })
		failures := 0
		for range 200 {
			failed, err := p.apply(state(l.t, want...))
			if err == nil && len(failed) == 0 {
				break
			}
			failures++
		}
		l.Do(heal)
		if got := l.steered(); failures == 0 || !slices.Equal(got, addresses(want)) {
			l.t.Errorf("steered %v after %d failures", got, failures)
		}
		l.Do(func() { heal = l.node.Slow(time.Second) })
		begin := time.Now()
		if _, err := p.apply(state(l.t)); err != nil || time.Since(begin) < time.Second {
			l.t.Errorf("a slow kernel took %s, %v", time.Since(begin), err)
		}
		if got := l.steered(); len(got) != 0 {
			l.t.Errorf("steered %v", got)
		}
		p.end()
	})
}
