// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"math/rand/v2"
	"net/netip"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// AskEvery is how often a host asks for each address: two who answer for as long as a part of a lease's term shall be heard.
const AskEvery = 150 * time.Millisecond

// Host is somebody in a segment who is no node, such as a client or a router.
type Host struct {
	segment *Segment
	hw      MAC
	address netip.Addr
	wanted  func() []netip.Addr
	random  *rand.Rand
}

// NewHost adds a host, which asks for all addresses that wanted gives, in order, from Start on.
func NewHost(s *Segment, address netip.Addr, wanted func() []netip.Addr) *Host {
	h := &Host{segment: s, hw: s.draw(), address: address, wanted: wanted, random: s.world.Random("host in " + s.Name)}
	s.add(h)
	return h
}

// Start has it ask for each address every AskEvery, at a moment of its own.
func (h *Host) Start() {
	for _, a := range h.wanted() {
		if !a.Is4() {
			continue
		}
		h.segment.world.After(time.Duration(h.random.Int64N(int64(AskEvery))), func() { h.ask(a) })
	}
	h.segment.world.After(AskEvery, h.Start)
}

func (h *Host) ask(a netip.Addr) {
	h.segment.world.Publish(event.Asks{Segment: h.segment.Name, Address: a})
	h.segment.carry(h, packet{to: everybody, from: h.hw, sender: h.hw, source: h.address, wanted: a}.frame())
}

func (h *Host) mac() MAC { return h.hw }

// hear answers who asks for the host.
func (h *Host) hear(frame []byte) {
	if p, err := parse(frame); err == nil {
		if answer, ok := p.answer(h.address, h.hw); ok {
			h.segment.carry(h, answer.frame())
		}
	}
}
