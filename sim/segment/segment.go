// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"net/netip"
	"time"

	"fairlead.io/fairlead/sim/engine"
)

// MAC is an Ethernet address.
type MAC [6]byte

var everybody = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Segment is one that carries frames.
type Segment struct {
	Name    string
	Network netip.Prefix // of those who are in it

	world    *engine.World
	stations []station // in the order in which they came
	macs     byte
}

// station is who sends and hears frames.
type station interface {
	mac() MAC
	hear(frame []byte)
}

// New makes a segment that nobody is in.
func New(w *engine.World, name string, network netip.Prefix) *Segment {
	return &Segment{Name: name, Network: network, world: w}
}

// add takes in a station, which has the address that draw gave it.
func (s *Segment) add(x station) { s.stations = append(s.stations, x) }

// draw gives a MAC that nobody else in the segment has: locally administered.
func (s *Segment) draw() MAC {
	s.macs++
	return MAC{0x02, 0, 0, 0, 0, s.macs}
}

// transit is how long a frame takes.
const transit = 50 * time.Microsecond

// carry has a frame arrive, at everybody whom it is for but the sender.
func (s *Segment) carry(from station, frame []byte) {
	s.world.After(transit, func() {
		for _, x := range s.stations {
			if to := MAC(frame[:6]); x != from && (to == everybody || to == x.mac()) {
				x.hear(frame)
			}
		}
	})
}
