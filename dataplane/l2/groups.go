// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"net/netip"
	"slices"
	"time"
)

// joinLocked has questions arrive where they are answered, and nowhere else. Addresses may share a group.
func (l *L2) joinLocked() {
	now := l.o.Clock.Now()
	want := l.responder.Groups(now)
	for name, p := range l.ports {
		p.leave(want[name])
		l.joinAtLocked(p, now, want[name])
	}
}

// missing counts the groups that could not be joined.
func (l *L2) missing() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.ports {
		for _, joined := range p.groups {
			if !joined {
				n++
			}
		}
	}
	return n
}

// leave leaves the groups that are not wanted any more.
func (p *port) leave(want map[netip.Addr]bool) {
	for group, joined := range p.groups {
		if want[group] {
			continue
		}
		if joined {
			_ = p.Leave(group) // at worst questions arrive that are not answered
		}
		delete(p.groups, group)
	}
}

// joinAtLocked joins the groups that are wanted; those that could not be only after a pause.
func (l *L2) joinAtLocked(p *port, now time.Duration, want map[netip.Addr]bool) {
	var open, failed []netip.Addr
	again := now >= p.retry
	for group := range want {
		if joined, known := p.groups[group]; !known || !joined && again {
			open = append(open, group)
		}
	}
	slices.SortFunc(open, netip.Addr.Compare)
	var first error
	for _, group := range open {
		_, known := p.groups[group]
		err := p.Join(group)
		p.groups[group] = err == nil
		if err == nil {
			continue
		}
		l.metrics.failed.Inc()
		if again {
			p.retry = now + retryPause
		}
		if known {
			continue // it was said
		}
		if failed = append(failed, group); first == nil {
			first = err
		}
	}
	if first != nil { // one line: thousands may fail for one reason
		l.o.Log.Error("groups not joined: neighbours cannot ask for their addresses", "interface", p.of.Name, "groups", len(failed), "first", failed[0], "err", first)
	}
}
