// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"cmp"
	"net/netip"
	"time"

	"fairlead.io/fairlead/sim/fabric/message"
)

// Restart is how much of graceful restart a switch knows.
type Restart uint8

// What it knows.
const (
	LongLived Restart = iota // RFC 9494 and RFC 4724
	Graceful                 // RFC 4724
	NoRestart                // paths go with their session
)

// Options are how a switch is configured, and what its make does.
type Options struct {
	Name     string // of the switch and its machine
	ASN      uint32
	RouterID netip.Addr
	Families []message.Family // default both
	Hold     time.Duration    // that it proposes: the smaller one counts. Default 90 s
	MaxPaths int              // of an ECMP set. Default 16
	OnePath  bool             // it does not know ADD-PATH
	Restart  Restart

	// KeepExpired keeps paths also when the hold timer has ended a session, if long-lived graceful restart was agreed on.
	KeepExpired bool
	// Notification keeps paths also when a session ends by a notification that is no hard reset (RFC 8538).
	Notification bool
	// OneStalePath keeps one path per prefix of a neighbour that is lost for long.
	OneStalePath bool
	// Wait is how long stale paths wait for End-of-RIB of a neighbour that came back. Default 360 s.
	Wait time.Duration
	// Lag and LagMost bound how late the FIB follows the RIB.
	Lag, LagMost time.Duration

	Neighbours []Neighbour
}

// Neighbour is a speaker that a switch is configured to peer with.
type Neighbour struct {
	Member string // its machine
	ASN    uint32
	Key    string // digest of the password, empty without one
}

// BIRD gives the options of a switch that does as BIRD 2.0 was measured to do.
func BIRD(name string, asn uint32, neighbours ...Neighbour) Options {
	return Options{
		Name: name, ASN: asn, Neighbours: neighbours, KeepExpired: true,
		Lag: 200 * time.Microsecond, LagMost: 2 * time.Millisecond,
	}
}

// FRR gives the options of a switch that does as FRR 8.4 was measured to do.
func FRR(name string, asn uint32, neighbours ...Neighbour) Options {
	return Options{
		Name: name, ASN: asn, Neighbours: neighbours, OneStalePath: true,
		Lag: 50 * time.Millisecond, LagMost: 70 * time.Millisecond,
	}
}

func (o Options) withDefaults() Options {
	if len(o.Families) == 0 {
		o.Families = []message.Family{4, 6}
	}
	o.Hold = cmp.Or(o.Hold, 90*time.Second)
	o.MaxPaths = cmp.Or(o.MaxPaths, 16)
	o.Wait = cmp.Or(o.Wait, 360*time.Second)
	o.RouterID = cmp.Or(o.RouterID, netip.AddrFrom4([4]byte{192, 0, 2, 254}))
	o.LagMost = max(o.Lag, o.LagMost)
	return o
}
