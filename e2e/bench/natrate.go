// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"
)

// Sizes of natRate.
const (
	natPairs    = 40 // of turns, of each node one
	natTurn     = 250 * time.Millisecond
	natRequests = 50 // one after the other, in each turn for latency
)

// natRate compares how many connections a second the agent's nat and kube-proxy's nftables mode let through, each with a
// request and its answer, spread over all Services. Both are measured in turns, the first of each pair by turns as well; a
// sample is the ratio of a pair. Everything, clients and server too, shares this machine's cores.
func natRate(t *bench) figures {
	n := newNATLab(t)
	var f figures
	detail := map[string]any{"endpoints": natEndpoints}
	for _, size := range natSizes {
		detail[fmt.Sprintf("translated_s_%d", size)] = n.grow(size)
		t.progressf("connecting to %d Services", size)
		time.Sleep(natQuiet) // until kube-proxy has done what it puts off
		rates, ratios := n.rates()
		f.samples = ratios
		of := map[string]any{"ratio_p50": middle(ratios)}
		latencies := n.latencies()
		for _, node := range n.nodes {
			of[node.name] = map[string]any{"connections_per_s": spread(rates[node]), "latency_ms": spread(latencies[node])}
		}
		detail[fmt.Sprintf("services_%d", size)] = of
	}
	f.detail = detail
	return f
}

// rates gives the connections a second of each turn, and the ratios of the pairs.
func (n *natLab) rates() (rates map[*natNode][]float64, ratios []float64) {
	rates = map[*natNode][]float64{}
	for pair := range natPairs {
		var last [2]float64
		for k := range n.nodes {
			which := (pair + k) % 2
			last[which] = n.turn(n.nodes[which])
			rates[n.nodes[which]] = append(rates[n.nodes[which]], last[which])
		}
		ratios = append(ratios, last[0]/last[1])
	}
	return rates, ratios
}

// turn gives the connections a second of one turn.
func (n *natLab) turn(node *natNode) float64 {
	return rate(n.t, node.name, natTurn, func(i int) error {
		_, err := node.request(n.scattered(i))
		return err
	})
}

// latencies are the milliseconds of requests that are made one after the other.
func (n *natLab) latencies() map[*natNode][]float64 {
	out := map[*natNode][]float64{}
	for pair := range natPairs {
		for k := range n.nodes {
			node := n.nodes[(pair+k)%2]
			for i := range natRequests {
				took, err := node.request(n.scattered(pair*natRequests + i))
				if err != nil {
					n.t.Fatalf("%s: %v", node.name, err)
				}
				out[node] = append(out[node], milliseconds(took))
			}
		}
	}
	return out
}

// scattered goes through the Services, jumping about.
func (n *natLab) scattered(i int) int { return i * 7919 % n.made } // 7919 is prime and divides no size
