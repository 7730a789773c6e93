// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// touch has the FIB follow the RIB at a prefix, after a while. What changes meanwhile comes along.
func (s *Switch) touch(prefix netip.Prefix) {
	s.dirty[prefix] = true
	if s.flush == nil {
		s.schedule()
	}
}

// schedule has the FIB follow the RIB after a while.
func (s *Switch) schedule() {
	lag := s.o.Lag
	if spread := s.o.LagMost - s.o.Lag; spread > 0 {
		lag += time.Duration(s.random.Int64N(int64(spread) + 1))
	}
	s.flush = s.world.After(lag, s.converge)
}

// converge installs what the RIB holds.
func (s *Switch) converge() {
	s.flush = nil
	dirty := slices.SortedFunc(maps.Keys(s.dirty), netip.Prefix.Compare)
	clear(s.dirty)
	for _, prefix := range dirty {
		paths := s.rib.of(prefix)
		chosen, hops := best(paths, s.o.MaxPaths)
		s.install(prefix, hops)
		e := event.Forwarding{Switch: s.o.Name, Prefix: prefix, NextHops: hops}
		for _, p := range paths {
			e.Paths = append(e.Paths, event.Path{
				Member: p.member, NextHop: p.NextHop, MED: p.MED, LocalPref: p.LocalPref,
				Stale: p.stale && !p.longLived, LongLived: p.longLived, Best: chosen[p],
			})
		}
		s.world.Publish(e)
	}
}

func (s *Switch) install(prefix netip.Prefix, hops []netip.Addr) {
	_, there := s.fib[prefix]
	switch {
	case len(hops) > 0:
		s.fib[prefix] = hops
		if !there {
			s.lengths[length(prefix)]++
		}
	case there:
		delete(s.fib, prefix)
		if s.lengths[length(prefix)]--; s.lengths[length(prefix)] == 0 {
			delete(s.lengths, length(prefix))
		}
	}
}

// masks is a length of prefixes of one family.
type masks struct {
	v6   bool
	bits int
}

func length(p netip.Prefix) masks { return masks{p.Addr().Is6(), p.Bits()} }

// Forward tells where a packet to an address goes now. Packets of one flow, which hash says, take one way as long as
// the ways stay the same. It is false for an address that the switch knows no way to.
func (s *Switch) Forward(to netip.Addr, hash uint64) (nextHop netip.Addr, ok bool) {
	for bits := to.BitLen(); bits >= 0; bits-- {
		if s.lengths[masks{to.Is6(), bits}] == 0 {
			continue
		}
		prefix, err := to.Prefix(bits)
		if err != nil {
			return netip.Addr{}, false
		}
		if hops := s.fib[prefix]; len(hops) > 0 {
			return hops[hash%uint64(len(hops))], true
		}
	}
	return netip.Addr{}, false
}

// Lag has the FIB follow the RIB later than before by so much, from the next change on; or sooner, also with what waits
// already: a switch that is slow no more works off what it has at its usual pace. It returns how late that is, from and to.
func (s *Switch) Lag(by time.Duration) (least, most time.Duration) {
	s.o.Lag += by
	s.o.LagMost += by
	if by < 0 && s.flush != nil {
		s.flush.Stop()
		s.schedule()
	}
	return s.o.Lag, s.o.LagMost
}
