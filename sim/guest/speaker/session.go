// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/sim/fabric/message"
)

// session is one connection to a switch. Its goroutine writes, another one reads; the speaker's lock guards what both
// and the speaker use.
type session struct {
	p    *peer
	peer bgp.Peer // as it was when the session began
	conn net.Conn
	in   chan heard

	// Of the goroutine of run:
	hold    time.Duration
	expires *time.Timer // the hold timer
	alive   *time.Timer // for the next keepalive
	heal    *time.Timer // for an end that makes the switch forget what it is not to have
	defers  *time.Timer // for a switch that sends no End-of-RIB

	// Under the speaker's lock:
	remote  message.Open
	awaited []message.Family // whose End-of-RIB has not come yet
	ready   bool             // paths may be sent
	told    bool             // all paths and our End-of-RIB were
	writing bool
	dirty   map[netip.Prefix]bool
	sent    map[netip.Prefix]map[uint32]message.Attributes // by what was written
	lost    map[netip.Prefix]map[uint32]bool               // of that, what the library has lost count of
	astray  map[netip.Prefix]bool                          // prefixes of which the switch has what it is not to have
	updates uint64
	number  uint64 // of the session, once it is established
	said    uint64 // updates and End-of-RIBs
	arrived uint64 // of those, at the switch
	wake    chan struct{}
}

// heard is a message that came, or why no more will.
type heard struct {
	message message.Message
	err     error
}

func newSession(p *peer, conn net.Conn) *session {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return &session{
		p: p, peer: p.Peer, conn: conn, in: make(chan heard),
		dirty: map[netip.Prefix]bool{}, sent: map[netip.Prefix]map[uint32]message.Attributes{}, lost: map[netip.Prefix]map[uint32]bool{}, astray: map[netip.Prefix]bool{}, wake: make(chan struct{}, 1),
	}
}

// errKilled says that the process is gone.
var errKilled = errors.New("killed")

// errAstray says that the switch was not told what it was to be told.
var errAstray = errors.New("the switch was not told what it was to be told")

// errHold says that nothing came for the hold time.
var errHold = errors.New("hold timer expired")

// run works until the session ends, and tells why.
func (n *session) run(ctx context.Context) error {
	defer n.conn.Close() // nothing is left to be said
	over := make(chan struct{})
	defer close(over)
	go n.read(over)
	n.hold = n.peer.HoldTime
	n.expires, n.alive, n.defers, n.heal = time.NewTimer(n.hold), time.NewTimer(n.hold), time.NewTimer(n.hold), time.NewTimer(n.hold)
	n.alive.Stop()
	n.defers.Stop()
	n.heal.Stop()
	defer n.heal.Stop()
	defer n.expires.Stop()
	defer n.alive.Stop()
	defer n.defers.Stop()
	err := n.write(n.greeting())
	for err == nil {
		select {
		case <-ctx.Done():
			return n.leave(context.Cause(ctx))
		case h := <-n.in:
			if err = h.err; err == nil {
				n.expires.Reset(n.hold)
				err = n.take(h.message)
			}
		case <-n.expires.C:
			return errors.Join(errHold, n.write(message.Notification{Code: message.HoldExpired}))
		case <-n.alive.C:
			n.alive.Reset(n.hold / 3)
			err = n.write(message.Keepalive{})
		case <-n.defers.C:
			err = n.begin()
		case <-n.heal.C:
			return errAstray // the switch keeps what it has until the next session has told it all
		case <-n.wake:
			err = n.flush()
		}
	}
	return err
}

// leave ends the session because we want so.
func (n *session) leave(how error) error {
	if errors.Is(how, errRemoved) {
		return errors.Join(how, n.write(message.Notification{Code: message.Cease, Subcode: message.PeerGone}))
	}
	return how
}

// read hands messages on until the connection ends.
func (n *session) read(over <-chan struct{}) {
	var d message.Decoder
	b := make([]byte, message.Most)
	for {
		size, err := n.conn.Read(b)
		d.Add(b[:size])
		for {
			m, bad := d.Next()
			if bad != nil {
				err = bad
			}
			if m == nil {
				break
			}
			select {
			case n.in <- heard{message: m}:
			case <-over:
				return
			}
		}
		if err != nil {
			select {
			case n.in <- heard{err: err}:
			case <-over:
			}
			return
		}
	}
}

func (n *session) write(m message.Message) error {
	if n.p.s.dead() {
		return errKilled
	}
	if _, err := n.conn.Write(message.Encode(m)); err != nil {
		return fmt.Errorf("write to peer: %w", err)
	}
	return nil
}

// greeting is our Open.
func (n *session) greeting() message.Open {
	p := n.peer
	m := message.Open{
		ASN: p.LocalASN, RouterID: n.p.s.c.RouterID, Hold: p.HoldTime, AddPath: true, SendMax: p.SendMax, Key: key(p.Password),
	}
	for _, f := range p.Families {
		m.Families = append(m.Families, message.Family(f))
	}
	if r := p.Restart; r.Mode != bgp.RestartNone {
		// Nodes do forward while a speaker is away, whether its process or its connection was lost.
		m.Restart = &message.Restart{Time: r.RestartTime, Forwarding: true, Notification: r.Notification, Stale: r.StaleTime}
	}
	return m
}

// take does what a message asks for.
func (n *session) take(m message.Message) error {
	switch m := m.(type) {
	case message.Open:
		return n.greeted(m)
	case message.Keepalive:
		return n.confirmed()
	case message.EndOfRIB:
		n.p.s.mu.Lock()
		n.awaited = slices.DeleteFunc(n.awaited, func(f message.Family) bool { return f == m.Family })
		waiting := len(n.awaited) > 0
		n.p.s.mu.Unlock()
		if waiting {
			return nil
		}
		return n.begin()
	case message.Deadly:
		n.p.s.c.Crash()
		return errKilled
	case message.Confusing:
		n.loseCount()
	case message.Arrived:
		n.p.s.mu.Lock()
		n.arrived = uint64(m.Count)
		n.p.s.mu.Unlock()
	case message.Notification:
		return fmt.Errorf("notification %d/%d: %s", m.Code, m.Subcode, m.Text)
	}
	return nil // what switches announce is ignored
}

func (n *session) greeted(m message.Open) error {
	if m.ASN != n.peer.RemoteASN {
		return errors.Join(fmt.Errorf("peer is of AS %d, not %d", m.ASN, n.peer.RemoteASN),
			n.write(message.Notification{Code: message.OpenError, Subcode: message.BadPeerAS}))
	}
	n.hold = min(n.hold, m.Hold)
	n.expires.Reset(n.hold)
	n.alive.Reset(n.hold / 3)
	n.p.s.mu.Lock()
	n.remote = m
	n.p.s.mu.Unlock()
	return n.write(message.Keepalive{})
}

// confirmed is the first keepalive: the session is established.
func (n *session) confirmed() error {
	n.p.s.mu.Lock()
	if n.p.session == n {
		n.p.s.mu.Unlock()
		return nil
	}
	n.p.session, n.p.state = n, stateEstablished
	n.p.s.opened++
	n.number = n.p.s.opened
	waits := n.peer.Restart.Mode != bgp.RestartNone && n.remote.Restart != nil
	if waits {
		n.awaited = n.families()
	}
	n.p.s.mu.Unlock()
	n.p.s.c.Logger.Info("bgp session up", "peer", n.peer.Address)
	if !waits {
		return n.begin()
	}
	n.defers.Reset(n.peer.Restart.Deferral)
	return nil
}

// families are those that both ends know.
func (n *session) families() (out []message.Family) {
	for _, f := range n.peer.Families {
		if slices.Contains(n.remote.Families, message.Family(f)) {
			out = append(out, message.Family(f))
		}
	}
	return out
}

// begin has all paths sent.
func (n *session) begin() error {
	n.p.s.mu.Lock()
	if n.ready {
		n.p.s.mu.Unlock()
		return nil
	}
	n.ready = true
	n.touch(n.p.s.prefixes())
	n.p.s.mu.Unlock()
	n.defers.Stop()
	return n.flush()
}

// touch notes prefixes that may have to be sent.
func (n *session) touch(prefixes []netip.Prefix) {
	for _, p := range prefixes {
		n.dirty[p] = true
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// written tells whether all was, by what was written: what the library says of that counts for nothing.
func (n *session) written() bool {
	return n.told && !n.writing && len(n.dirty) == 0 && len(n.astray) == 0
}
