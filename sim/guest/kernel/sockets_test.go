// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/event"
	guest "fairlead.io/fairlead/sim/guest/kernel"
	"fairlead.io/fairlead/sim/kernel"
)

// Whatever states follow each other, and whenever the agent is killed or a table takes no more rows in between: the next one finds its way
// from what is there, rows never name what is not (the model says so), and calls get what the last state says.
func TestPropertySockFindsItsWayFromWhatAKillLeft(t *testing.T) {
	testkit.Check(t, func(r *rapid.T) {
		var states [][2]int // endpoints of two Services
		for range rapid.IntRange(1, 4).Draw(r, "states") {
			states = append(states, [2]int{rapid.IntRange(0, 3).Draw(r, "endpoints of x"), rapid.IntRange(0, 12).Draw(r, "endpoints of y")})
		}
		kills := rapid.SliceOfN(rapid.IntRange(0, 400), len(states), len(states)).Draw(r, "microseconds until a kill")
		full := rapid.SliceOfN(rapid.Bool(), len(states), len(states)).Draw(r, "full")
		wrong := ""
		inLab(t, 1, func(l *lab) {
			have := map[string]string{}
			l.Do(func() {
				l.World.World.Hear(func(e event.Stamped) {
					if x, ok := e.Event.(event.Resolves); ok {
						have[netip.AddrPortFrom(x.Address, x.Port).String()] = strings.TrimSpace(x.Way.Verdict + " " + strings.Join(x.Way.Backends, " "))
					}
				})
			})
			for i, n := range states {
				want := state(r, service("a/x", false, n[0], vip(false, 1)), service("a/y", false, n[1], vip(false, 2), vip(true, 1)))
				heal := func() {}
				if full[i] {
					l.Do(func() { heal = l.node.Fail(kernel.Fault{Errno: "E2BIG", Share: 0.5, Sockets: true}) })
				}
				p := l.Process("n1")
				s := must(guest.Open(p.Dial, "n1").Sock(sock.Options{Config: sock.Config{Node: "n1"}, Room: guest.SocketRoom(0)}))(t)
				go func() { _, _ = s.Apply(l.t.Context(), want) }()
				time.Sleep(time.Duration(kills[i]) * time.Microsecond)
				p.Kill()
				l.Do(heal)
				if i < len(states)-1 {
					continue
				}
				p = l.Process("n1")
				last := must(guest.Open(p.Dial, "n1").Sock(sock.Options{Config: sock.Config{Node: "n1"}, Room: guest.SocketRoom(0)}))(t)
				if _, err := last.Apply(l.t.Context(), want); err != nil {
					wrong = err.Error()
				}
				p.Kill()
				for at, n := range map[netip.Addr]int{vip(false, 1): n[0], vip(false, 2): n[1], vip(true, 1): n[1]} {
					var backends []string
					for k := range n {
						pod := fmt.Sprintf("10.244.1.%d:8080", k+1)
						if at.Is6() {
							pod = fmt.Sprintf("[2001:db8:f::%d]:8080", k+1)
						}
						backends = append(backends, pod)
					}
					slices.Sort(backends)
					verdict := strings.TrimSpace("use " + strings.Join(backends, " "))
					if n == 0 {
						verdict = "refuse"
					}
					if got := have[netip.AddrPortFrom(at, 80).String()]; got != verdict {
						wrong += fmt.Sprintf("%s gives %q, want %q; ", at, got, verdict)
					}
				}
			}
		})
		if wrong != "" {
			r.Fatal(wrong)
		}
	})
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
