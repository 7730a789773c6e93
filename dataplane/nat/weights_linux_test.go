// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
)

// weighing is the Service of pods 1 to 3 with weights; 0 is quiesced.
func weighing(weights ...uint16) *desired.Service {
	s := web(1, 2, 3)
	for i := range s.Endpoints {
		for pod, w := range weights {
			for _, e := range podEndpoints(pod + 1) {
				if e.Address == s.Endpoints[i].Address {
					s.Endpoints[i].Weight, s.Endpoints[i].Quiesced = w, w == 0
				}
			}
		}
	}
	return s
}

// K39, K40: the kernel deals by weights, whatever the choice: by chance, in turn, with affinity.
// Rule: K40.
func TestNewConnectionsSpreadByWeight(t *testing.T) {
	l := newLab(t)
	spread := func(s *desired.Service, to netip.AddrPort, n int) map[string]int {
		l.apply(s)
		got := map[string]int{}
		for range n {
			pod, _ := l.must(l.client, "tcp", to)
			got[pod]++
		}
		return got
	}
	for _, to := range []netip.AddrPort{at(vip4, 80), at(vip6, 80)} {
		got := spread(weighing(1, 0, 3), to, 800)
		// Of one degree of freedom: beyond 48 once in two hundred billion runs.
		if d := float64(got["pod1"] - 200); got["pod2"] > 0 || d*d/200+d*d/600 > 48 {
			t.Errorf("by chance, %s: %v", to, got)
		}
		turns := weighing(1, 2, 5)
		turns.Scheduler = desired.WeightedRoundRobin
		if got := spread(turns, to, 64); got["pod1"] != 8 || got["pod2"] != 16 || got["pod3"] != 40 {
			t.Errorf("wrr, %s: %v", to, got)
		}
		plain := weighing(1, 2, 5)
		plain.Scheduler = desired.RoundRobin
		if got := spread(plain, to, 60); got["pod1"] != 20 || got["pod2"] != 20 || got["pod3"] != 20 {
			t.Errorf("rr, %s: %v", to, got)
		}
		dialled := weighing(1, 2, 5)
		dialled.Scheduler = desired.DestinationHash
		if got := spread(dialled, to, 20); len(got) != 1 {
			t.Errorf("dh, %s: %v", to, got)
		}
		sticky := weighing(1, 2, 5)
		sticky.Affinity = time.Hour
		if got := spread(sticky, to, 20); len(got) != 1 {
			t.Errorf("affinity, %s: %v", to, got)
		}
		only := weighing(0, 0, 5)
		only.Affinity = time.Hour
		if got := spread(only, to, 20); got["pod3"] != 20 {
			t.Errorf("affinity and weight 0, %s: %v", to, got)
		}
	}
}

// K40: an endpoint of weight 0 has no new connection, and those that it has go on, also if there is nobody else: then new
// ones are refused.
// Rule: K40.
func TestWeightZeroEndsNoConnection(t *testing.T) {
	l := newLab(t)
	for _, address := range []netip.Addr{vip4, vip6} {
		t.Run(address.String(), func(t *testing.T) {
			l.apply(web(1))
			var established []*conn
			for _, of := range []struct {
				network string
				port    uint16
			}{{"tcp", 80}, {"udp", 53}} {
				c, err := l.dial(l.client, of.network, at(address, of.port), patience)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				established = append(established, c)
			}
			goOn := func(when string) {
				t.Helper()
				for i, c := range established {
					if pod, _, err := c.ask(); err != nil || pod != "pod1" {
						t.Errorf("%s: connection %d is with %q: %v", when, i, pod, err)
					}
				}
			}
			goOn("before")
			l.apply(weighing(0, 1, 1))
			goOn("others have weight")
			for i := range 20 {
				for _, of := range []string{"tcp", "udp"} {
					port := map[string]uint16{"tcp": 80, "udp": 53}[of]
					if pod, _ := l.must(l.client, of, at(address, port)); pod == "pod1" {
						t.Errorf("%s connection %d went to weight 0", of, i)
					}
				}
			}
			l.apply(weighing(0, 0, 0))
			goOn("nobody has weight")
			l.want(fmt.Sprintf("all of weight 0, %s", address), l.client, "tcp", at(address, 80), "refused")
			l.apply(web(1))
			goOn("weight is given back")
		})
	}
}
