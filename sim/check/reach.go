// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// reach is which nodes get to which ports of pods.
type reach struct {
	pods  map[string]netip.Addr // the last address of each that ever took connections
	ports map[portOf]opening
	cuts  map[sight]view        // nodes that are cut off from addresses of pods, or were
	said  map[netip.Addr]uint64 // the event that said last where a pod takes connections
}

// portOf is a port of a pod.
type portOf struct {
	address netip.Addr
	port    string
}

// opening is whether a port takes connections, and since when.
type opening struct {
	open  bool
	since time.Duration
}

func newReach() reach {
	return reach{pods: map[string]netip.Addr{}, ports: map[portOf]opening{}, cuts: map[sight]view{}, said: map[netip.Addr]uint64{}}
}

func (r *reach) hear(e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Answers:
		r.pods[x.Pod], r.said[x.Address] = x.Address, e.Number
		for at, was := range r.ports {
			if at.address == x.Address && was.open && !slices.Contains(x.Ports, at.port) {
				r.ports[at] = opening{false, e.At}
			}
		}
		for _, port := range x.Ports {
			if at := (portOf{x.Address, port}); !r.ports[at].open {
				r.ports[at] = opening{true, e.At}
			}
		}
	case event.Link:
		if a, is := strings.CutPrefix(x.To, start.PodPrefix); is {
			r.cuts[sight{x.From, a}] = view{!x.Up, e.At, e.Number}
		}
	}
}

// to tells whether a node gets to any of some ports, whether that has been so since a moment, and an event that says so.
func (r *reach) to(node string, a netip.Addr, ports []string, since time.Duration) (can, settled bool, number uint64) {
	cut, ever := r.cuts[sight{node, a.String()}]
	settled, number = !ever || cut.since <= since, max(r.said[a], cut.number)
	for _, port := range ports {
		at, known := r.ports[portOf{a, port}]
		can = can || at.open && !cut.blocked
		settled = settled && (!known || at.since <= since)
	}
	return can, settled, number
}

// missed is when a node last did not get to each of some ports, if that was at different times the first of these: now, while it does not.
func (r *reach) missed(node string, a netip.Addr, ports []string, now time.Duration) time.Duration {
	cut, ever := r.cuts[sight{node, a.String()}]
	missed := now
	for _, port := range ports {
		at := r.ports[portOf{a, port}]
		if cut.blocked || !at.open {
			continue
		}
		last := at.since
		if ever {
			last = max(last, cut.since)
		}
		missed = min(missed, last)
	}
	return missed
}
