// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

// history is what a target was found to be since it is wanted, by a simpler account: all of it.
type history struct {
	results []Result
	begun   time.Duration
	asked   bool
}

// opinion looks for the newest run of equal results that was long enough.
func (h *history) opinion(t Target) Opinion {
	o, run, last := Unknown, 0, false
	for i, r := range h.results {
		if i == 0 || r.OK != last {
			run = 0
		}
		run, last = run+1, r.OK
		if r.OK && run == t.Healthy {
			o = Good
		}
		if !r.OK && run == t.Unhealthy {
			o = Bad
		}
	}
	return o
}

// drawTarget draws one of a few, so that they come back.
func drawTarget(t *rapid.T) Target {
	n := rapid.IntRange(1, 5).Draw(t, "target")
	return Target{
		Type: desired.ProbeTCP, At: netip.AddrPortFrom(netip.MustParseAddr("198.51.100.11"), uint16(n)),
		Interval: time.Duration(n) * time.Second / 2, Timeout: time.Second, Healthy: 1 + n%2, Unhealthy: 1 + n%3,
	}
}

func inOrder(targets []Target) []Target {
	slices.SortFunc(targets, Target.compare)
	return slices.Compact(targets)
}

// Balancing §14: what is thought follows from the results in a row since a target is wanted, void ones left out; bounds hold; and every
// target is probed again about an interval after its last probe began, as far as others leave room.
// Rule: balancing §14.
func TestPropertyThresholdsDecide(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		limits := Limits{Targets: rapid.IntRange(1, 8).Draw(t, "room"), UnderWay: rapid.IntRange(1, 3).Draw(t, "at a time")}
		b := NewBook(limits, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
		now := time.Duration(0)
		model, asking, since := map[Target]*history{}, []Target(nil), map[Target]time.Duration{}
		check := func() {
			t.Helper()
			wanted := map[Opinion]int{}
			for target, h := range model {
				wanted[h.opinion(target)]++
				if got, _ := b.Of(target); got != h.opinion(target) {
					t.Fatalf("%v after %+v is thought to be %v, want %v", target, h.results, got, h.opinion(target))
				}
			}
			if by, _ := b.Counts(); by[Good] != wanted[Good] || by[Bad] != wanted[Bad] || by[Unknown] != wanted[Unknown] {
				t.Fatalf("counts %v, want %v", by, wanted)
			}
			if len(asking) > limits.UnderWay {
				t.Fatalf("%d probes are under way, of %d", len(asking), limits.UnderWay)
			}
		}
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 15).Draw(t, "what") {
			case 0:
				targets := inOrder(rapid.SliceOfN(rapid.Custom(drawTarget), 0, 10).Draw(t, "targets"))
				unfit := b.Want(now, targets)
				next := map[Target]*history{}
				for _, target := range targets {
					switch h := model[target]; {
					case h != nil:
						next[target] = h
					case !slices.Contains(unfit, target):
						next[target] = &history{begun: now}
						if slices.Contains(asking, target) { // from when it was wanted before
							next[target] = &history{begun: since[target], asked: true}
						}
					}
				}
				gone := 0
				for _, target := range asking {
					if next[target] == nil {
						gone++
					}
				}
				if len(unfit) > 0 && len(next)+gone < limits.Targets || len(next) > limits.Targets {
					t.Fatalf("%d targets of %d are taken on, %d are not", len(next), limits.Targets, len(unfit))
				}
				model = next
			case 1, 2, 3, 4, 5, 6, 7:
				now += time.Duration(rapid.IntRange(0, 1500).Draw(t, "milliseconds")) * time.Millisecond
				before := len(asking)
				for _, target := range b.Begin(now) {
					h := model[target]
					if h == nil || h.asked || slices.Contains(asking, target) {
						t.Fatalf("%v is probed though nobody wants it, or twice at a time", target)
					}
					if len(h.results) > 0 && now-h.begun < target.Interval*9/10 {
						t.Fatalf("%v is probed %v after the last time", target, now-h.begun)
					}
					h.asked, h.begun, since[target] = true, now, now
					asking = append(asking, target)
				}
				if len(asking) < limits.UnderWay {
					for target, h := range model {
						if !h.asked && now-h.begun > target.Interval*11/10 {
							t.Fatalf("%v was not probed for %v, with %d of %d under way before", target, now-h.begun, before, limits.UnderWay)
						}
					}
				}
			default:
				if len(asking) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(asking)-1).Draw(t, "which")
				target := asking[i]
				asking = slices.Delete(asking, i, i+1)
				r := Result{OK: rapid.Bool().Draw(t, "ok"), Void: rapid.IntRange(0, 5).Draw(t, "void") == 0, Why: "why"}
				h, before := model[target], Unknown
				if h != nil {
					before = h.opinion(target)
					h.asked = false
					if !r.Void {
						h.results = append(h.results, r)
					}
				}
				changed := b.Done(now, target, r)
				if h != nil && changed != (h.opinion(target) != before) || h == nil && changed {
					t.Fatalf("%v: it says that something changed: %t", target, changed)
				}
			}
			check()
			if at, waits := b.Next(); waits && len(asking) >= limits.UnderWay {
				t.Fatalf("a probe would begin at %v though there is no room", at)
			}
		}
	})
}

// Balancing §14: which targets decide about which places of a policy.
// Rule: balancing §14.
func TestWhatIsProbed(t *testing.T) {
	four, six := netip.MustParseAddr("198.51.100.11"), netip.MustParseAddr("2001:db8::11")
	policy := func(p desired.Probe, ports ...string) *desired.Policy {
		r := &desired.Policy{Mode: desired.ToAddresses, Probe: p, Backends: []desired.PolicyBackend{{Address: four, Ready: true}, {Address: four, Ready: true}, {Address: six, Ready: true}}}
		for i, text := range ports {
			var number uint16
			var protocol string
			if _, err := fmt.Sscanf(text, "%d/%s", &number, &protocol); err != nil {
				t.Fatal(err)
			}
			kind := uint8(tcp)
			if protocol == "udp" {
				kind = udp
			}
			r.Captures = append(r.Captures, desired.Capture{Address: netip.MustParseAddr("169.254.77.1"), Port: desired.Port{Protocol: kind, Number: uint16(i)}, Target: number})
		}
		return r
	}
	for name, c := range map[string]struct {
		redirect *desired.Policy
		want     string
	}{
		"by connection":         {policy(desired.Probe{Type: "TCP"}, "80/tcp", "81/tcp"), "80/tcp: TCP :80; 81/tcp: TCP :81; "},
		"one port of both":      {policy(desired.Probe{Type: "TCP"}, "53/tcp", "53/udp", "54/tcp"), "53/tcp: TCP :53; 54/tcp: TCP :54; 53/udp: TCP :53; "},
		"UDP beside TCP":        {policy(desired.Probe{Type: "TCP"}, "80/tcp", "81/tcp", "90/udp"), "80/tcp: TCP :80; 81/tcp: TCP :81; 90/udp: TCP :80 TCP :81; "},
		"UDP alone":             {policy(desired.Probe{Type: "TCP"}, "90/udp"), ""},
		"a port of its own":     {policy(desired.Probe{Type: "HTTP", Port: 9}, "80/tcp", "90/udp"), "80/tcp: HTTP :9/; 90/udp: HTTP :9/; "},
		"HTTPS":                 {policy(desired.Probe{Type: "HTTPS", Path: "/ok"}, "80/tcp"), "80/tcp: HTTPS :80/ok; "},
		"ICMP":                  {policy(desired.Probe{Type: "ICMP", Port: 9}, "80/tcp", "90/udp"), "80/tcp: ICMP ; 90/udp: ICMP ; "},
		"datagrams":             {policy(desired.Probe{Type: "UDP"}, "80/tcp", "90/udp"), "80/tcp: TCP :80; 90/udp: UDP :90; "},
		"datagrams to one port": {policy(desired.Probe{Type: "UDP", Port: 9}, "80/tcp", "90/udp"), "80/tcp: UDP :9; 90/udp: UDP :9; "},
		"none":                  {policy(desired.Probe{}, "80/tcp"), ""},
		"of a later release":    {policy(desired.Probe{Type: "GRPC"}, "80/tcp"), ""},
		"pods, which others watch": {func() *desired.Policy {
			r := policy(desired.Probe{Type: "TCP"}, "80/tcp")
			r.Mode = desired.ToPods
			return r
		}(), ""},
	} {
		got := ""
		for _, check := range Checks(c.redirect) {
			if check.Address != four {
				t.Errorf("%s: %s is probed, of a family that nobody dials", name, check.Address)
			}
			got += fmt.Sprintf("%d/%s:", check.Port.Number, protocolName(check.Port.Protocol))
			for _, target := range check.By {
				text := target.String()
				got += " " + text[:len(target.Type)+1] + text[len(target.Type)+1+len(four.String()):]
			}
			got += "; "
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A target that policies share is one; another threshold makes it another one.
// Rule: balancing §14.
func TestSharedTargetsAreProbedOnce(t *testing.T) {
	at := Target{Type: "TCP", At: netip.MustParseAddrPort("198.51.100.11:80"), Interval: time.Second, Healthy: 1, Unhealthy: 3}
	other := at
	other.Unhealthy = 2
	if got := Targets([]Check{{By: []Target{at, other}}, {By: []Target{at}}, {By: []Target{other}}}); len(got) != 2 {
		t.Errorf("%v", got)
	}
}
