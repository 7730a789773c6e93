// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/api/desired"
)

// Times of the responder.
const (
	// announceEvery is the pause between announcements of one address. They are repeated for announceFor, so that a frame
	// of the former owner that was late is overwritten.
	announceEvery = 500 * time.Millisecond
	announceFor   = 3 * time.Second
	// burst is how many frames are sent in one go, and burstEvery the pause between two: a switch that learns a
	// thousand addresses at once drops some.
	burst      = 64
	burstEvery = 10 * time.Millisecond
	// probeEvery is how often a link asks for somebody, deafAfter after what silence it counts as deaf.
	probeEvery = time.Second
	deafAfter  = 3500 * time.Millisecond
	// silentAfter is after what silence announcements may have been lost: longer than a question would wait for its answer.
	silentAfter = probeEvery * 3 / 2
)

// Interface is one that can answer for addresses.
type Interface struct {
	Name  string
	Index int
	MAC   MAC
	Up    bool // switched on, with a carrier
	// Addresses are its own, with their networks.
	Addresses []netip.Prefix
}

// Renewal is what a node asks for, and says about itself.
type Renewal struct {
	Sent  time.Duration // by the clock that leases are measured with; it rises from renewal to renewal
	Held  []Held        // all leases that may still be used
	Links []desired.Link
}

// Frame is to be sent by an interface.
type Frame struct {
	Interface string
	Bytes     []byte
}

// Responder decides what a node says on its links. It reads no clock: now is a reading of one that never stops nor
// runs back. One goroutine at a time may use it.
type Responder struct {
	book  book
	links []*link        // in order of their names
	known []desired.Link // the same as leases see them, whether they hear anybody or not
	// announcing is what is announced until when.
	announcing map[spot]*campaign
	looked     []desired.Link // the links, as of when it was looked last which answer
}

// link is an interface and what was heard there.
type link struct {
	Interface
	neighbour netip.Addr    // who was heard last; the zero Addr while nobody was
	heard     time.Duration // when
	asked     time.Duration // when it was asked for somebody last
	upSince   time.Duration
}

// spot is an address on an interface.
type spot struct {
	address netip.Addr
	link    string
}

// campaign is a run of announcements.
type campaign struct{ next, until time.Duration }

// NewResponder makes one that answers for nothing.
func NewResponder() *Responder {
	return &Responder{book: newBook(), announcing: map[spot]*campaign{}}
}

// SetInterfaces says which interfaces there are. One that came up announces again what it answers for: switches and
// neighbours may have forgotten.
func (r *Responder) SetInterfaces(now time.Duration, list []Interface) {
	var links []*link
	var rose []string
	for _, i := range list {
		l := &link{Interface: i, heard: now, asked: now - probeEvery, upSince: now}
		if old := r.link(i.Name); old != nil {
			if !i.Up {
				l.Addresses = remembered(i.Addresses, old.Addresses)
			}
			l.neighbour, l.heard, l.asked, l.upSince = old.neighbour, old.heard, old.asked, old.upSince
			if i.Up && (!old.Up || old.MAC != i.MAC || old.Index != i.Index) {
				l.upSince = now
				rose = append(rose, i.Name)
			}
		} else if i.Up {
			rose = append(rose, i.Name)
		}
		links = append(links, l)
	}
	slices.SortFunc(links, func(a, b *link) int { return cmp.Compare(a.Name, b.Name) })
	r.links, r.known = links, nil
	for _, l := range links {
		d := desired.Link{Name: l.Name, Up: l.Up}
		for _, p := range l.Addresses {
			d.Prefixes = append(d.Prefixes, p.Masked())
		}
		r.known = append(r.known, d)
	}
	r.look(now)
	r.announceOn(now, rose...)
}

// look announces where other links answer than when it looked last, on all that do now: neighbours know one that does not
// any more, since it fell, hears nobody or lost its network. Nothing else changes who answers.
func (r *Responder) look(now time.Duration) {
	links := r.report(now)
	if slices.EqualFunc(r.looked, links, desired.Link.Equal) {
		return
	}
	before := r.looked
	r.looked = links
	for _, e := range r.book.leases {
		if was, is := answering(before, e), answering(links, e); e.valid(now) && !slices.Equal(was, is) {
			r.announce(now, e, is)
		}
	}
}

// answering are the links by which an address is answered for: of those that are for it and up one for each segment, first
// those that are not deaf, then in order of their names. Links are in one segment if they are in one network.
func answering(links []desired.Link, e *entry) (names []string) {
	serving := slices.DeleteFunc(desired.Serving(links, e.Interfaces, e.Address), func(l desired.Link) bool { return !l.Up })
	slices.SortStableFunc(serving, func(a, b desired.Link) int {
		return cmp.Or(compareBool(a.Deaf, b.Deaf), cmp.Compare(a.Name, b.Name))
	})
	var picked []desired.Link
	for _, l := range serving {
		if !slices.ContainsFunc(picked, l.Beside) {
			picked, names = append(picked, l), append(names, l.Name)
		}
	}
	return names
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// announceOn announces on some links what is answered for.
func (r *Responder) announceOn(now time.Duration, names ...string) {
	for _, e := range r.book.leases {
		if len(names) > 0 && e.valid(now) {
			r.announce(now, e, names)
		}
	}
}

// remembered are the addresses of an interface that is down, with those that it had: the kernel takes IPv6 addresses off,
// and what the interface is for would be forgotten, and looked for at others.
func remembered(now, before []netip.Prefix) []netip.Prefix {
	out := slices.Clone(now)
	for _, p := range before {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func (r *Responder) link(name string) *link {
	for _, l := range r.links {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Renew begins a renewal that is sent now.
func (r *Responder) Renew(now time.Duration) Renewal {
	sent, held := r.book.renew(now)
	return Renewal{Sent: sent, Held: held, Links: r.report(now)}
}

// Grant takes in the answer to a renewal: the leases of this node, all of them. It tells whether the answer counted.
func (r *Responder) Grant(now, sent time.Duration, leases []Lease) bool {
	counts := sent == r.book.sent && !r.book.left
	for _, a := range r.book.grant(now, sent, leases) {
		r.announce(now, r.book.leases[a], nil)
	}
	return counts
}

// Leave has nothing be said for any address any more, and gives the renewal that tells so.
func (r *Responder) Leave(now time.Duration) Renewal {
	r.book.leave()
	return r.Renew(now)
}

// announce begins announcements of an address where it is answered for; on says on which links, nil means all.
func (r *Responder) announce(now time.Duration, e *entry, on []string) {
	if on == nil {
		for _, l := range r.links {
			on = append(on, l.Name)
		}
	}
	for _, name := range on {
		if r.serves(e, name) {
			r.announcing[spot{e.Address, name}] = &campaign{next: now, until: now + announceFor}
		}
	}
}

// serves tells whether an address is answered for on a link.
func (r *Responder) serves(e *entry, name string) bool {
	return slices.Contains(answering(r.looked, e), name)
}

// report are the links as the group is told of them.
func (r *Responder) report(now time.Duration) []desired.Link {
	out := slices.Clone(r.known)
	for i, l := range r.links {
		out[i].Deaf = l.deaf(now)
	}
	return out
}

// deaf tells whether a link heard somebody once, and nobody for long since it is up.
func (l *link) deaf(now time.Duration) bool {
	return l.Up && l.neighbour.IsValid() && now-max(l.heard, l.upSince) > deafAfter
}

// Hear takes in a frame, and gives the one that answers it; nil for none.
func (r *Responder) Hear(now time.Duration, on string, frame []byte) []byte {
	r.look(now)
	l := r.link(on)
	q, ok := parse(frame)
	if l == nil || !ok || q.from == l.MAC {
		return nil
	}
	if now-max(l.heard, l.upSince) > silentAfter {
		r.announceOn(now, l.Name)
	}
	l.heard = now
	if q.source.IsValid() {
		l.neighbour = q.source
	}
	if !q.target.IsValid() {
		return nil
	}
	e, ok := r.book.of(now, q.target)
	if !ok || !r.serves(e, on) {
		return nil
	}
	return q.answer(l.MAC)
}

// Due gives what is to be sent now, and when to ask again.
func (r *Responder) Due(now time.Duration) (frames []Frame, next time.Duration) {
	r.look(now)
	next = now + probeEvery
	for _, l := range r.links {
		if l.Up && l.neighbour.IsValid() && now-l.asked >= probeEvery {
			l.asked = now
			frames = append(frames, Frame{l.Name, probe(l.MAC, l.own(l.neighbour), l.neighbour)})
		}
	}
	for s, c := range r.announcing {
		e, ok := r.book.of(now, s.address)
		switch {
		case !ok || c.next > c.until || !r.serves(e, s.link):
			delete(r.announcing, s)
		case c.next > now:
			next = min(next, c.next)
		case len(frames) >= burst:
			next = min(next, now+burstEvery)
		default:
			frames = append(frames, Frame{s.link, announcement(r.link(s.link).MAC, s.address)})
			c.next = now + announceEvery
			next = min(next, c.next)
		}
	}
	return frames, next
}

// own is the link's address of a family; for a neighbour that has a link-local one, a link-local one.
func (l *link) own(neighbour netip.Addr) netip.Addr {
	for _, p := range l.Addresses {
		if a := p.Addr(); a.Is4() == neighbour.Is4() && a.IsLinkLocalUnicast() == neighbour.IsLinkLocalUnicast() {
			return a
		}
	}
	return netip.Addr{}
}

// Answering lists the addresses that are answered for now, in order.
func (r *Responder) Answering(now time.Duration) []netip.Addr {
	var out []netip.Addr
	for a, e := range r.book.leases {
		if e.valid(now) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// Groups are those in which neighbours ask for what is answered for, by the interface that they ask at. One that is down
// counts: it hears them as soon as it comes up.
func (r *Responder) Groups(now time.Duration) map[string]map[netip.Addr]bool {
	out := map[string]map[netip.Addr]bool{}
	for _, l := range r.known {
		out[l.Name] = map[netip.Addr]bool{}
	}
	for a, e := range r.book.leases {
		if !a.Is6() || !e.valid(now) {
			continue
		}
		for _, l := range desired.Serving(r.known, e.Interfaces, a) {
			out[l.Name][SolicitedNode(a)] = true
		}
	}
	return out
}
