// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// sockAgainst compares, in one run over the same cables, how clients reach the same Services: by programs at their sockets, by the
// translation of the agent's nat and by that of kube-proxy's nftables mode, and how they reach the endpoints directly. Services
// of the translations come from a real API server. A sample is what the rate of a turn with programs is of that of kube-proxy.
func sockAgainst(t *bench) figures {
	n, s := newNATLab(t), newSockLab(t)
	n.openDirectWay()
	var f figures
	detail := map[string]any{"endpoints": natEndpoints}
	for _, size := range natSizes {
		detail[fmt.Sprintf("translated_s_%d", size)] = n.grow(size)
		s.grow(size)
		t.progressf("connecting to %d Services", size)
		time.Sleep(natQuiet) // until kube-proxy has done what it puts off
		m := n.compare(s)
		f.samples = ratios(m.rates["sock"], m.rates["kube-proxy"])
		detail[fmt.Sprintf("services_%d", size)] = m.detail()
	}
	f.detail = detail
	return f
}

// openDirectWay lets clients reach endpoints by the agent's node, and endpoints them.
func (n *natLab) openDirectWay() {
	n.t.run("ip", "route", "add", "10.0.0.0/11", "via", lab.NodeAddress(1).String(), "dev", n.nodes[0].cable)
	n.pods.Run("ip", "route", "add", "198.51.100.0/24", "via", "10.254.1.1")
}

// netWay is a way to reach something over the network.
type netWay struct {
	name     string
	by       *natNode
	programs bool // at the client's socket
	to       func(i int) netip.AddrPort
}

func (n *natLab) ways() []netWay {
	service := func(i int) netip.AddrPort { return netip.AddrPortFrom(lab.VIP(n.scattered(i)), 80) }
	direct := func(i int) netip.AddrPort { return sockEndpoint(n.scattered(i), rand.IntN(natEndpoints)) }
	agent, proxy := n.nodes[0], n.nodes[1]
	return []netWay{{"direct", agent, false, direct}, {"sock", agent, true, service}, {"nat", agent, false, service}, {"kube-proxy", proxy, false, service}}
}

// compared are the figures of each way by its name, one of each turn.
type compared struct{ rates, connected, answered map[string][]float64 }

// compare takes the ways by turns, each time beginning with another.
func (n *natLab) compare(s *sockLab) compared {
	c := compared{map[string][]float64{}, map[string][]float64{}, map[string][]float64{}}
	ways := n.ways()
	for turn := range natPairs {
		for k := range ways {
			w := ways[(turn+k)%len(ways)]
			s.enter(s.plain)
			if w.programs {
				s.enter(s.cgroup)
			}
			c.turn(n.t, w, turn)
		}
	}
	s.enter(s.home)
	return c
}

// turn measures one way once.
func (c *compared) turn(t *bench, w netWay, turn int) {
	dialer := w.by.dialer()
	c.rates[w.name] = append(c.rates[w.name], rate(t, w.name, natTurn, func(i int) error {
		_, err := ask(dialer, w.to(i))
		return err
	}))
	for i := range natRequests {
		took, err := ask(dialer, w.to(turn*natRequests+i))
		if err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
		c.connected[w.name] = append(c.connected[w.name], milliseconds(took.connected))
		c.answered[w.name] = append(c.answered[w.name], milliseconds(took.answered))
	}
}

func (c *compared) detail() map[string]any {
	out := map[string]any{}
	for name := range c.rates {
		out[name] = map[string]any{
			"connections_per_s": spread(c.rates[name]),
			"connect_ms":        spread(c.connected[name]),
			"request_ms":        spread(c.answered[name]),
			"ratio_to_direct":   middle(ratios(c.rates[name], c.rates["direct"])),
		}
	}
	return out
}

// ratios gives a to b, one by one.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}
