// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"net/netip"
	"slices"
	"time"
)

// BusyWithin is how lately a packet of a connection was seen that is busy.
//
// The kernel keeps an established TCP connection for five days without a packet. Those that went on by way of another
// node leave such an entry behind, which is why open ones alone tell nothing.
const BusyWithin = 30 * time.Second

// Count is what was found.
type Count struct {
	Open int // connections that are open by what their node has seen
	Busy int // of those, the ones that a packet was seen of within BusyWithin, or may have been
}

// State is what connection tracking says of a connection of TCP (net/netfilter/nf_conntrack_tcp.h).
type State uint8

// The states in which both ends may have something to say still.
const (
	synSent     State = 1
	synReceived State = 2
	established State = 3
	finWait     State = 4
	closeWait   State = 5
)

const (
	protocolTCP = 6
	protocolUDP = 17
)

// Flow is one connection, as its first packet was before it was translated.
type Flow struct {
	Protocol uint8 // IANA number
	From, To netip.Addr
	State    State          // of TCP
	Left     time.Duration  // until the kernel forgets it, unless another packet comes
	By       netip.AddrPort // who answers: the endpoint, if it was translated
	ID       uint32         // of its own among those that there are
}

// Timeouts are after what time without a packet the kernel forgets a connection. Several may be meant, by what its last
// packets were.
type Timeouts struct {
	TCP []time.Duration // of established ones
	UDP []time.Duration
}

// Tally counts the connections to some addresses.
type Tally struct {
	To       map[netip.Addr]bool
	Inside   []netip.Prefix      // who connects from there comes by no switch
	Own      map[netip.Addr]bool // likewise
	Timeouts Timeouts
	Count    Count
}

// Add counts a connection if it is one of those.
func (t *Tally) Add(f Flow) {
	if !t.To[f.To] || t.Own[f.From] || f.From.IsLoopback() || !f.open() ||
		slices.ContainsFunc(t.Inside, func(p netip.Prefix) bool { return p.Contains(f.From) }) {
		return
	}
	t.Count.Open++
	if t.idle(f) < BusyWithin {
		t.Count.Busy++
	}
}

// open tells whether packets may follow. Of protocols other than TCP nobody sees the end.
func (f Flow) open() bool {
	switch f.State {
	case synReceived, established, finWait, closeWait:
		return true
	}
	return f.Protocol != protocolTCP
}

// idle is for how long no packet has been seen, at least: where one of several timeouts may have been set by the last
// one, it is the time since which is the least. 0 where nobody knows.
func (t *Tally) idle(f Flow) time.Duration {
	var after []time.Duration
	switch {
	case f.Protocol == protocolTCP && f.State == established:
		after = t.Timeouts.TCP
	case f.Protocol == protocolUDP:
		after = t.Timeouts.UDP
	}
	least, known := time.Duration(0), false
	for _, d := range after {
		if since := d - f.Left; since >= 0 && (!known || since < least) {
			least, known = since, true
		}
	}
	return least
}
