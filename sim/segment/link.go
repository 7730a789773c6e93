// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"net/netip"
	"slices"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/network"
)

// Link is a node's interface in a segment, and has its name.
type Link struct {
	segment *Segment
	machine *Machine
	index   int
	hw      MAC
	address netip.Prefix
	// cut and mute are by how many faults it has no carrier, and by how many what it sends and hears is lost.
	cut, mute int
	ports     []*network.Conn // of processes that have it open
}

// Name is that of the link and of its segment.
func (l *Link) Name() string { return l.segment.Name }

// Address is the node's own on the link, with its network.
func (l *Link) Address() netip.Prefix { return l.address }

// Up tells whether it has a carrier.
func (l *Link) Up() bool { return l.cut == 0 }

// Passes tells whether what is sent by it arrives.
func (l *Link) Passes() bool { return l.cut+l.mute == 0 && l.machine.on }

// Cut takes its carrier, until the function that it returns is called.
func (l *Link) Cut() (heal func()) { return l.spoil(&l.cut) }

// Mute has all be lost that it sends and hears, though it has a carrier, until the function that it returns is called.
func (l *Link) Mute() (heal func()) { return l.spoil(&l.mute) }

func (l *Link) spoil(count *int) (heal func()) {
	add := func(n int) {
		*count += n
		l.machine.changed()
		l.publish()
	}
	add(1)
	return func() { add(-1) }
}

// publish tells how the link is.
func (l *Link) publish() {
	l.segment.world.Publish(event.Carrier{Node: l.machine.name, Segment: l.Name(), Up: l.Up() && l.machine.on, Passes: l.Passes()})
}

func (l *Link) mac() MAC { return l.hw }

// hear takes a frame: the kernel answers for the node's own address, and processes that have the link open see it.
func (l *Link) hear(frame []byte) {
	if !l.Passes() {
		return
	}
	if p, err := parse(frame); err == nil {
		if answer, ok := p.answer(l.address.Addr(), l.hw); ok {
			l.segment.carry(l, answer.frame())
		}
	}
	for _, c := range l.ports {
		c.Send(slices.Clone(frame))
	}
}

// send is a frame that a process sends.
func (l *Link) send(frame []byte) {
	if !l.Passes() {
		return
	}
	p, err := parse(frame)
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case p.from != l.hw || p.sender != l.hw:
		why = "it names another sender than the link"
	case p.reply && p.source == l.address.Addr():
		why = "it answers for the node's own address, which the kernel does"
	}
	if why != "" {
		l.segment.world.Publish(event.Refused{Model: "segment " + l.Name(), By: l.machine.name, What: "a frame", Why: why})
		return
	}
	if p.source != l.address.Addr() && !p.source.IsUnspecified() {
		l.segment.world.Publish(event.Claim{Node: l.machine.name, Segment: l.Name(), Address: p.source, Asked: p.reply})
	}
	l.segment.carry(l, frame)
}
