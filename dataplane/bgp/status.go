// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"errors"
	"net/netip"
	"time"
)

// Errors of speakers.
var (
	// ErrStopped is returned by a speaker that was detached or drained.
	ErrStopped = errors.New("speaker stopped")
	// ErrDropped means that a speaker could not write UPDATEs and left them out: a peer lacks paths.
	ErrDropped = errors.New("updates dropped")
)

// PeerStatus is how things stand with one peer.
type PeerStatus struct {
	Name        string
	Address     netip.Addr
	State       string // as BGP names it: idle, active, opensent, openconfirm, established
	Established bool
	Since       time.Time     // of the session, or of its loss; zero if there never was one
	AddPath     []Family      // in which it takes several paths per prefix
	LongLived   bool          // the switch keeps our paths as a last resort when we are lost
	HoldTime    time.Duration // negotiated
	Announced   int           // paths that it is sent
	Refused     int           // paths that it sent in this session, or the last one, each as often as it sent it: we learn none
	Demanding   int           // sessions that were closed since it asked for all paths again and again
	UpdatesSent uint64
	Demoted     bool
	Fault       Fault // why there is no session, as far as that is known
}

// Fault is why there is no session with a peer. The zero value is none that is known.
type Fault struct {
	Code   string // for programs: see docs/bgp.md
	Reason string
	Remedy string
}

// String tells reason and remedy.
func (f Fault) String() string { return f.Reason + "; " + f.Remedy }
