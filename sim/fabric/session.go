// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/fabric/message"
	"fairlead.io/fairlead/sim/network"
)

// session is one connection of a speaker.
type session struct {
	s       *Switch
	conn    *network.Conn
	decoder message.Decoder
	member  string

	open        *message.Open // that the speaker sent, nil before
	established bool
	over        bool
	hold        time.Duration // agreed on; 0 for none
	heard       time.Duration // when something came last
	arrived     uint32        // Updates and EndOfRIBs so far
	holdTimer   *engine.Timer
	alive       *engine.Timer
}

// openWait is how long a connection may take to send its Open (RFC 4271 §8.2.2 suggests as much).
const openWait = 4 * time.Minute

func (s *Switch) accept(c *network.Conn) {
	n := &session{s: s, conn: c, member: c.Peer()}
	s.opening = append(s.opening, n)
	n.holdTimer = s.world.After(openWait, n.abandon)
	c.Handle(n.data, func(bool) { n.lost() })
}

// data takes what came in.
func (n *session) data(b []byte) {
	n.decoder.Add(b)
	before := n.arrived
	defer func() {
		if n.arrived > before && !n.over {
			n.send(message.Arrived{Count: n.arrived})
		}
	}()
	for !n.over {
		m, err := n.decoder.Next()
		if err != nil {
			n.refuse(message.Notification{Code: 1, Text: err.Error()}, "a message", err.Error())
			return
		}
		if m == nil {
			return
		}
		n.heard = n.s.world.Now()
		n.take(m)
	}
}

// take does what a message says.
func (n *session) take(m message.Message) {
	if stop, ok := m.(message.Notification); ok {
		n.notified(stop)
		return
	}
	if n.open == nil {
		if open, ok := m.(message.Open); ok {
			n.greet(open)
			return
		}
		n.refuse(message.Notification{Code: message.FSMError, Subcode: 1}, kindOf(m), "it came before the open message")
		return
	}
	switch m := m.(type) {
	case message.Keepalive:
		if !n.established {
			n.establish()
		}
	case message.Update:
		n.arrived++
		if n.inSession(m) {
			n.update(m)
		}
	case message.EndOfRIB:
		n.arrived++
		if !n.inSession(m) {
			return
		}
		if !slices.Contains(n.open.Families, m.Family) {
			n.refuse(message.Notification{Code: message.UpdateError}, kindOf(m), "its family was not agreed on")
			return
		}
		n.s.synced(n.member, m.Family)
	default:
		n.refuse(message.Notification{Code: message.FSMError, Subcode: 3}, kindOf(m), "a session has one")
	}
}

// inSession refuses what may only come in an established session.
func (n *session) inSession(m message.Message) bool {
	if !n.established {
		n.refuse(message.Notification{Code: message.FSMError, Subcode: 2}, kindOf(m), "the session is not confirmed yet")
	}
	return n.established
}

func kindOf(m message.Message) string { return fmt.Sprintf("%T", m)[len("message."):] }

// greet answers a speaker's Open.
func (n *session) greet(open message.Open) {
	s := n.s
	known := s.neighbours[n.member]
	if known != nil && known.Key != open.Key {
		n.abandon() // its segments would have been ignored
		return
	}
	if code, why := s.judge(known, open); why != "" {
		n.refuse(message.Notification{Code: message.OpenError, Subcode: code, Text: why}, "Open", why)
		return
	}
	if old := known.session; old != nil {
		// The speaker has lost the connection before this end noticed (RFC 4724 §4.2).
		if !s.agree(*old.open).graceful {
			n.send(message.Notification{Code: message.Cease, Subcode: 7, Text: "there is a session"})
			n.leave()
			return
		}
		old.down("replaced by a new connection", true)
	}
	n.open = &open
	n.hold = min(open.Hold, s.o.Hold)
	if s.hostile == HostileOpen {
		n.send(message.Deadly{})
	}
	n.send(s.greeting())
	n.send(message.Keepalive{})
	if n.hold > 0 {
		n.holdTimer.Stop()
		n.holdTimer = s.world.After(n.hold, n.watch)
		n.alive = s.world.After(n.hold/3, n.live)
	}
}

// greeting is the switch's own Open.
func (s *Switch) greeting() message.Open {
	m := message.Open{ASN: s.o.ASN, RouterID: s.o.RouterID, Hold: s.o.Hold, Families: s.o.Families, AddPath: !s.o.OnePath}
	if s.o.Restart != NoRestart {
		m.Restart = &message.Restart{Notification: s.o.Notification}
		if s.o.Restart == LongLived {
			m.Restart.Stale = time.Second // it helps others; it announces nothing that could become stale
		}
	}
	return m
}

// establish is the speaker's first Keepalive.
func (n *session) establish() {
	s := n.s
	n.established = true
	s.opening = slices.DeleteFunc(s.opening, func(o *session) bool { return o == n })
	known := s.neighbours[n.member]
	if old := known.session; old != nil { // two connections were opening at a time
		old.down("replaced by a new connection", true)
	}
	known.session = n
	s.world.Publish(event.Session{Switch: s.o.Name, Member: n.member, Up: true})
	s.returned(known, *n.open)
	if s.hostile == HostileUp {
		n.send(message.Deadly{})
	}
	for _, f := range s.o.Families {
		if slices.Contains(n.open.Families, f) {
			n.send(message.EndOfRIB{Family: f})
		}
	}
}

// live sends the next Keepalive.
func (n *session) live() {
	n.send(message.Keepalive{})
	n.alive = n.s.world.After(n.hold/3, n.live)
}

// watch ends the session when nothing came for the hold time.
func (n *session) watch() {
	if due := n.heard + n.hold; due > n.s.world.Now() {
		n.holdTimer = n.s.world.At(due, n.watch)
		return
	}
	n.send(message.Notification{Code: message.HoldExpired})
	agreed := n.s.agree(*n.open)
	n.down("hold timer expired", agreed.notification || agreed.stale > 0 && n.s.o.KeepExpired)
}

// notified is the speaker's leave.
func (n *session) notified(m message.Notification) {
	why := fmt.Sprintf("notification %d/%d %s", m.Code, m.Subcode, m.Text)
	hard := m.Code == message.Cease && m.Subcode == message.HardReset
	n.down(why, n.open != nil && !hard && n.s.agree(*n.open).notification)
}

// lost is the end of the connection without a word.
func (n *session) lost() { n.down("connection closed", true) }

// refuse ends a session with a speaker that did what no speaker may.
func (n *session) refuse(say message.Notification, what, why string) {
	n.s.refused(n.member, what, why)
	n.send(say)
	n.down(why, false)
}

// cease ends a session because the switch wants so.
func (n *session) cease(why string) {
	n.send(message.Notification{Code: message.Cease, Subcode: message.PeerGone})
	n.down(why, false)
}

// down is the end of a session; with keep its paths stay if that was agreed on.
func (n *session) down(why string, keep bool) {
	if n.over {
		return
	}
	n.leave()
	known := n.s.neighbours[n.member]
	if known == nil || known.session != n {
		return
	}
	known.session = nil
	n.s.world.Publish(event.Session{Switch: n.s.o.Name, Member: n.member, Why: why})
	n.s.away(known, n.s.agree(*n.open), keep)
}

// leave ends the connection after what was sent on it.
func (n *session) leave() {
	n.conn.End()
	n.finish()
}

// abandon resets the connection.
func (n *session) abandon() {
	n.conn.Reset()
	n.finish()
}

func (n *session) finish() {
	n.over = true
	n.holdTimer.Stop()
	n.alive.Stop()
	n.s.opening = slices.DeleteFunc(n.s.opening, func(o *session) bool { return o == n })
}

func (n *session) send(m message.Message) { n.conn.Send(message.Encode(m)) }
