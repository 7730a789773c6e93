// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"net/netip"
	"time"
)

// forgottenAfter is how long a connection of TCP without a packet counts for its endpoint, as long as IPVS remembers one. The kernel
// keeps an established one for five days, also if it went on by way of another node.
const forgottenAfter = 15 * time.Minute

// Endpoint is where connections are translated to.
type Endpoint struct {
	Protocol uint8 // IANA number
	At       netip.AddrPort
}

// Load is what an endpoint has of connections that were translated to it.
type Load struct {
	Open  int // that packets may follow of, and that are not forgotten
	Fresh int // of those, the ones that were not there at the count before
}

// Loads counts the connections to some endpoints.
type Loads struct {
	Of       map[Endpoint]Load // one for each that is asked for
	Timeouts Timeouts
	// Before and Now are the connections of the last count and of this one. Without Before none is fresh.
	Before, Now map[uint32]bool
}

// Add counts a connection if it leads to one of them, and was translated.
func (l *Loads) Add(f Flow) {
	e := Endpoint{f.Protocol, f.By}
	load, asked := l.Of[e]
	if !asked || f.By.Addr() == f.To || !f.begins() || (&Tally{Timeouts: l.Timeouts}).idle(f) > forgottenAfter {
		return
	}
	load.Open++
	if l.Before != nil && !l.Before[f.ID] {
		load.Fresh++
	}
	l.Of[e] = load
	l.Now[f.ID] = true
}

// begins tells whether a connection is one that its endpoint works for, or is about to.
func (f Flow) begins() bool {
	return f.State == synSent || f.State == synReceived || f.State == established || f.Protocol != protocolTCP
}
