// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// segments is how the links of nodes are.
type segments struct {
	links []Link
	state map[linkOf]linkState
}

// linkOf is a link of a node to a segment.
type linkOf struct{ node, segment string }

type linkState struct {
	down, mute bool          // it has no carrier; or it has one, and nothing passes
	since      time.Duration // when it began to be so
	rose       time.Duration // when it got its carrier back, or never
	mutedFor   time.Duration // how long it was mute just before, 0 for not at all
}

func newSegments(links []Link) segments { return segments{links: links, state: map[linkOf]linkState{}} }

func (s *segments) carrier(now time.Duration, x event.Carrier) {
	at := linkOf{x.Node, x.Segment}
	next := linkState{down: !x.Up, mute: x.Up && !x.Passes, since: now, rose: never}
	old, known := s.state[at]
	if old.down == next.down && old.mute == next.mute {
		next.since = old.since
	}
	if known {
		next.rose = old.rose
	}
	if next.since == now && old.mute {
		next.mutedFor = now - old.since
	}
	if old.down && x.Up {
		next.rose = now
	}
	s.state[at] = next
}

// of lists the links of a node by which clients find an address: to the segment in whose network it is, or to all if it is in none's.
func (s *segments) of(node string, a netip.Addr) (out []linkOf) {
	inside := slices.ContainsFunc(s.links, func(l Link) bool { return l.Network.Contains(a) })
	for _, l := range s.links {
		if l.Node == node && (!inside || l.Network.Contains(a)) {
			out = append(out, linkOf{l.Node, l.Segment})
		}
	}
	return out
}

// passes tells whether what a node says by a link is heard.
func (s *segments) passes(l linkOf) bool {
	is := s.state[l]
	return !is.down && !is.mute
}

// muteWithin tells whether a link of anybody has a carrier and leads nowhere, or did within a time: nobody knows at once.
func (s *segments) muteWithin(now, d time.Duration, muted map[linkOf]time.Duration) bool {
	return slices.ContainsFunc(s.links, func(l Link) bool {
		at, ever := muted[linkOf{l.Node, l.Segment}]
		return s.state[linkOf{l.Node, l.Segment}].mute || ever && now-at < d
	})
}
