// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// worded is what a report says, in words: of each place of each policy or Service.
func worded(pieces []*fairleadv1.ProbeReport) (out []string) {
	say := func(of string, places []*fairleadv1.PlaceReport) {
		for _, p := range places {
			a, _ := netip.AddrFromSlice(p.GetAddress())
			o := map[[2]bool]Opinion{{true, false}: Good, {false, true}: Bad, {false, false}: Unknown}[[2]bool{p.GetHealthy(), p.GetUnhealthy()}]
			out = append(out, fmt.Sprintf("%s %s %d/%d %s", of, a, p.GetPort().GetNumber(), p.GetPort().GetProtocol(), o))
		}
	}
	for _, piece := range pieces {
		for _, r := range piece.GetRedirects() {
			say(fmt.Sprint(r.GetNumber()), r.GetPlaces())
		}
		for _, s := range piece.GetServices() {
			say(s.GetName(), s.GetPlaces())
		}
	}
	return out
}

type answers map[netip.Addr]Result

func (a answers) Probe(_ context.Context, t Target) Result { return a[t.At.Addr()] }

// Balancing §14, K50: the pieces of a report say of every place that is probed what was found out, each once and within the bounds, in pieces that
// heartbeats have room for: the first one begins, and more follow all but the last. Nothing is told twice until something else is thought.
// Rule: balancing §14.
func TestPropertyReportsAreWholeInPieces(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		found := answers{}
		at := func(i int) netip.Addr {
			a := netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)})
			if i%5 == 4 {
				a = netip.AddrFrom16([16]byte{0x20, 1, 14: byte(i >> 8), 15: byte(i)})
			}
			found[a] = Result{OK: i%3 > 0, Void: i%7 == 0}
			return a
		}
		c, err := New(Options{Node: "n1", Prober: found, Random: rand.New(rand.NewPCG(1, 2)), Log: slog.New(slog.DiscardHandler), Limits: Limits{Targets: 100_000, UnderWay: 100_000}})
		if err != nil {
			t.Fatal(err)
		}
		if pieces, number, _ := c.Report(0); len(pieces) != 1 || !pieces[0].GetBegins() || !pieces[0].GetMore() || number == 0 {
			t.Fatalf("before anything is known %v is told", pieces)
		}
		probe := desired.Probe{Type: desired.ProbeTCP, Interval: time.Hour, Timeout: time.Second, Healthy: 1, Unhealthy: 1}
		var redirects []*desired.Policy
		var services []desired.Source
		var want []string
		say := func(of string, a netip.Addr, port string) {
			o := Unknown
			if r := found[a]; !r.Void {
				o = map[bool]Opinion{true: Good, false: Bad}[r.OK]
			}
			want = append(want, fmt.Sprintf("%s %s %s %s", of, a, port, o))
		}
		next := 0
		sizes := rapid.SliceOfN(rapid.SampledFrom([]int{0, 1, 3, 90, 190, 210, 1500}), 0, 4)
		for n, size := range sizes.Draw(t, "policies") {
			r := &desired.Policy{Name: fmt.Sprint("p", n), Number: uint32(n + 1), EveryNode: true, Mode: desired.ToAddresses, Probe: probe}
			for _, vip := range []string{"169.254.77.1", "fd00::1"} {
				r.Captures = append(r.Captures, desired.Capture{Address: netip.MustParseAddr(vip), Port: desired.Port{Protocol: tcp, Number: 80}, Target: 6432})
			}
			for range size {
				r.Backends = append(r.Backends, desired.PolicyBackend{Address: at(next)})
				say(fmt.Sprint(n+1), at(next), "6432/6")
				next++
			}
			redirects = append(redirects, r)
		}
		for n, size := range sizes.Draw(t, "services") {
			s := &desired.Service{Name: strings.Repeat(fmt.Sprint(n), rapid.SampledFrom([]int{3, 63, 300}).Draw(t, "name")), Probe: probe}
			for range size {
				s.Endpoints = append(s.Endpoints, desired.Endpoint{Address: at(next), Ready: true, Ports: []desired.EndpointPort{{Port: desired.Port{Protocol: tcp, Number: 8080}}}})
				say(s.Name, at(next), "0/0")
				next++
			}
			services = append(services, desired.Held{Is: s})
		}
		as := fsm.Revision{Epoch: 1, Index: 7}
		c.Take(redirects, services, fsm.Revision{Epoch: 1, Index: 6})
		c.Take(redirects, services, as) // it is the same still
		for _, target := range c.begin() {
			c.probe(context.Background(), target)
		}
		later := c.now() + 2*time.Second // by when all first probes are due
		for _, target := range c.book.Begin(later) {
			c.book.Done(later, target, found[target.At.Addr()])
		}
		pieces, number, of := c.Report(0)
		if again, same, still := c.Report(number); again != nil || same != number || of != as || still != as {
			t.Fatalf("%d pieces are told twice, as of %v and %v, want %v", len(again), of, still, as)
		}
		for i, p := range pieces {
			if p.GetBegins() != (i == 0) || p.GetMore() != (i < len(pieces)-1) || proto.Size(p) > pieceBytes+placeBytes {
				t.Fatalf("piece %d of %d begins %v, more %v, has %d bytes", i, len(pieces), p.GetBegins(), p.GetMore(), proto.Size(p))
			}
		}
		got := worded(pieces)
		if slices.Sort(got); len(want) <= maxReported {
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("%d places are told of, want %d:\n%v\n%v", len(got), len(want), got, want)
			}
		} else if len(got) != maxReported || len(slices.Compact(got)) != maxReported {
			t.Fatalf("%d places are told of, of %d", len(got), len(want))
		}
		if next > 0 {
			for _, a := range slices.SortedFunc(maps.Keys(found), netip.Addr.Compare)[:1] {
				found[a] = Result{OK: found[a].Void || !found[a].OK}
			}
			for _, target := range c.book.Begin(later + 3*time.Hour) {
				c.probe(context.Background(), target)
			}
			if pieces, _, _ := c.Report(number); len(pieces) == 0 {
				t.Fatal("something else is thought, and nothing is told")
			}
		}
	})
}

// K50: what is probed of an endpoint are the port that the Service names, else its ports of the probe's protocol, by that probe; of those that are
// ready, or would be; and all of them have to fail. The account here goes by port, not by endpoint.
// Rule: K50.
func TestPropertyWhatIsProbedOfEndpoints(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := &desired.Service{Name: "shop/web", Probe: desired.Probe{
			Type: rapid.SampledFrom([]string{"TCP", "HTTP", "UDP", "ICMP", "gRPC", ""}).Draw(t, "type"), Port: rapid.SampledFrom([]uint16{0, 0, 9000}).Draw(t, "port"),
			Interval: time.Second, Timeout: time.Second,
		}}
		want := map[string]bool{}
		wants := func(e desired.Endpoint, port uint16) {
			if (e.Ready || e.Failing) && slices.Contains([]string{"TCP", "HTTP", "UDP", "ICMP"}, s.Probe.Type) {
				want[fmt.Sprintf("%s %s %d", e.Address, s.Probe.Type, port)] = true
			}
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "endpoints") {
			e := desired.Endpoint{Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})}
			e.Ready = rapid.Bool().Draw(t, "ready")
			e.Failing = !e.Ready && rapid.Bool().Draw(t, "failing")
			for _, p := range rapid.SliceOfN(rapid.SampledFrom([]desired.Port{{Protocol: tcp, Number: 80}, {Protocol: udp, Number: 53}, {Protocol: tcp, Number: 53}, {Protocol: 132, Number: 7}}), 0, 4).Draw(t, "ports") {
				e.Ports = append(e.Ports, desired.EndpointPort{Port: p})
				mine := map[string]uint8{"TCP": tcp, "HTTP": tcp, "UDP": udp}[s.Probe.Type] == p.Protocol
				if s.Probe.Port == 0 && s.Probe.Type != "ICMP" && mine {
					wants(e, p.Number)
				}
			}
			if s.Probe.Type == "ICMP" {
				wants(e, 0)
			} else if s.Probe.Port != 0 {
				wants(e, s.Probe.Port)
			}
			s.Endpoints = append(s.Endpoints, e)
		}
		c, err := New(Options{Node: "n1", Prober: answers{}, Random: rand.New(rand.NewPCG(1, 2)), Log: slog.New(slog.DiscardHandler), Outside: rapid.IntRange(0, 4).Draw(t, "outside") == 0})
		if err != nil {
			t.Fatal(err)
		}
		c.Take(nil, []desired.Source{desired.Held{Is: s}}, fsm.Revision{})
		got := map[string]bool{}
		for _, state := range c.States() {
			if state.Policy != "Service/shop/web" {
				t.Fatalf("a state of %s", state.Policy)
			}
		}
		for target := range c.book.targets {
			got[fmt.Sprintf("%s %s %d", target.At.Addr(), target.Type, target.At.Port())] = true
		}
		if c.o.Outside {
			clear(want)
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%v are probed, want %v: %+v", got, want, s)
		}
		book := NewBook(Limits{}, rand.New(rand.NewPCG(1, 2)))
		for _, check := range c.services { // each is bad once all of its ports are
			for _, one := range check.checks {
				book.Want(0, Targets([]Check{one}))
				for i, target := range book.Begin(time.Hour) {
					if o, _ := book.OfPlace(one); o == Bad {
						t.Fatalf("after %d of %d ports failed, the endpoint is bad", i, len(one.By))
					}
					book.Done(time.Hour, target, Result{Why: "nobody"})
				}
				if o, _ := book.OfPlace(one); o != Bad {
					t.Fatalf("no port answers, and the endpoint is %v", o)
				}
			}
		}
	})
}
