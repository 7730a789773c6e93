// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/fabric/message"
)

// restart is what a session agreed on for the time after it.
type restart struct {
	graceful     bool
	time         time.Duration // at full rank
	stale        time.Duration // after that, as a last resort
	notification bool
}

// agree is what the switch and a speaker have in common.
func (s *Switch) agree(open message.Open) restart {
	if open.Restart == nil || s.o.Restart == NoRestart {
		return restart{}
	}
	r := restart{graceful: true, time: open.Restart.Time, notification: open.Restart.Notification && s.o.Notification}
	if s.o.Restart == LongLived {
		r.stale = open.Restart.Stale
	}
	return r
}

// away is the beginning of a neighbour's absence.
func (s *Switch) away(n *neighbour, agreed restart, keep bool) {
	n.timer.Stop()
	n.restart = agreed
	if !keep || !agreed.graceful {
		s.drop(n.Member, func(*path) bool { return true })
		return
	}
	// What it did not announce again since its last absence is not kept a second time (RFC 4724 §4.2), but for what
	// is a last resort already.
	s.drop(n.Member, func(p *path) bool { return p.stale && !p.longLived })
	s.change(n.Member, func(p *path) { p.stale = true })
	n.timer = s.world.After(agreed.time, func() { s.late(n) })
}

// late is the end of the restart time.
func (s *Switch) late(n *neighbour) {
	if n.restart.stale == 0 {
		s.drop(n.Member, func(*path) bool { return true })
		return
	}
	if s.o.OneStalePath {
		s.thin(n.Member)
	}
	s.change(n.Member, func(p *path) { p.longLived = true })
	n.timer = s.world.After(n.restart.stale, func() { s.drop(n.Member, func(*path) bool { return true }) })
}

// returned is a new session of a neighbour. Paths of a family that it did not go on forwarding for go at once, the
// others wait for its End-of-RIB.
func (s *Switch) returned(n *neighbour, open message.Open) {
	n.timer.Stop()
	forwards := s.agree(open).graceful && open.Restart.Forwarding
	for _, f := range []message.Family{4, 6} {
		if !forwards || !slices.Contains(open.Families, f) {
			s.synced(n.Member, f)
		}
	}
	n.timer = s.world.After(s.o.Wait, func() {
		s.synced(n.Member, 4)
		s.synced(n.Member, 6)
	})
}

// synced is the End-of-RIB: what is still stale was not announced again.
func (s *Switch) synced(member string, f message.Family) {
	s.dropIf(member, func(prefix netip.Prefix, p *path) bool { return p.stale && message.FamilyOf(prefix.Addr()) == f })
}

// thin leaves one path of a neighbour for each prefix.
func (s *Switch) thin(member string) {
	kept := map[netip.Prefix]bool{}
	for _, prefix := range s.prefixes() {
		for _, p := range s.rib.of(prefix) {
			if p.member != member {
				continue
			}
			if kept[prefix] {
				s.rib.remove(prefix, key{member, p.id})
				s.touch(prefix)
			}
			kept[prefix] = true
		}
	}
}

func (s *Switch) drop(member string, which func(*path) bool) {
	s.dropIf(member, func(_ netip.Prefix, p *path) bool { return which(p) })
}

func (s *Switch) dropIf(member string, which func(netip.Prefix, *path) bool) {
	for _, prefix := range s.prefixes() {
		for _, p := range s.rib.of(prefix) {
			if p.member == member && which(prefix, p) {
				s.rib.remove(prefix, key{member, p.id})
				s.touch(prefix)
			}
		}
	}
}

// change changes the paths of a neighbour.
func (s *Switch) change(member string, how func(*path)) {
	for _, prefix := range s.prefixes() {
		for _, p := range s.rib.of(prefix) {
			if p.member == member {
				how(p)
				s.touch(prefix)
			}
		}
	}
}

func (s *Switch) prefixes() []netip.Prefix {
	return slices.SortedFunc(maps.Keys(s.rib), netip.Prefix.Compare)
}
