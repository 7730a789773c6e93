// SPDX-License-Identifier: Apache-2.0

package testswitch

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// family is an address family: 4 or 6.
type family int

func familyOf(a netip.Addr) family {
	if a.Is4() {
		return 4
	}
	return 6
}

func fromWire(f wire.Family) family {
	if f == wire.RF_IPv4_UC {
		return 4
	}
	return 6
}

// openWait is how long a neighbour has for its side of the greeting.
const openWait = 10 * time.Second

// errNotified means that the neighbour took its leave with a NOTIFICATION.
var errNotified = errors.New("notification received")

// session is one connection with a neighbour.
type session struct {
	conn    net.Conn
	n       *neighbor
	hold    time.Duration
	options *wire.MarshallingOption
	caps    capabilities
}

// capabilities are what a neighbour's OPEN offers.
type capabilities struct {
	asn       uint32
	addPath   map[wire.Family]wire.BGPAddPathMode // as we decode
	restart   map[family]time.Duration
	forwards  map[family]bool
	longLived map[family]time.Duration
}

// serve runs a session from its greeting to its end.
func (s *Switch) serve(conn net.Conn) {
	log := s.conf.Logger.With("remote", conn.RemoteAddr())
	x, err := s.greet(conn)
	if err != nil {
		log.Info("session refused", "err", err)
		return
	}
	s.begin(x)
	log = log.With("router_id", x.n.RouterID)
	log.Info("session open", "hold", x.hold)
	stop := make(chan struct{})
	s.wg.Go(func() { x.keepAlive(stop) })
	err = s.read(x)
	close(stop)
	log.Info("session closed", "err", err)
	s.end(x, errors.Is(err, errNotified))
}

// greet exchanges OPEN and the first KEEPALIVE.
func (s *Switch) greet(conn net.Conn) (*session, error) {
	if err := conn.SetDeadline(time.Now().Add(openWait)); err != nil {
		return nil, err
	}
	m, err := readMessage(conn, nil)
	if err != nil {
		return nil, err
	}
	open, ok := m.Body.(*wire.BGPOpen)
	if !ok {
		return nil, fmt.Errorf("message of type %d before OPEN", m.Header.Type)
	}
	caps := readCapabilities(open)
	s.mu.Lock()
	n := s.neighbors[open.ID]
	s.mu.Unlock()
	if n == nil || n.ASN != caps.asn {
		_ = send(conn, wire.NewBGPNotificationMessage(wire.BGP_ERROR_OPEN_MESSAGE_ERROR, wire.BGP_ERROR_SUB_BAD_PEER_AS, nil))
		return nil, fmt.Errorf("no neighbour with router id %s and AS %d is expected", open.ID, caps.asn)
	}
	ours, err := s.open()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(send(conn, ours), send(conn, wire.NewBGPKeepAliveMessage())); err != nil {
		return nil, err
	}
	if m, err = readMessage(conn, nil); err != nil {
		return nil, err
	}
	if m.Header.Type != wire.BGP_MSG_KEEPALIVE {
		return nil, fmt.Errorf("message of type %d instead of KEEPALIVE", m.Header.Type)
	}
	hold := min(s.conf.HoldTime, time.Duration(open.HoldTime)*time.Second)
	return &session{conn: conn, n: n, hold: hold, options: &wire.MarshallingOption{AddPath: caps.addPath}, caps: caps}, nil
}

// open returns our OPEN: every family with ADD-PATH, and help with restarts of both kinds.
func (s *Switch) open() (*wire.BGPMessage, error) {
	as := uint16(wire.AS_TRANS)
	if s.conf.ASN < 1<<16 {
		as = uint16(s.conf.ASN)
	}
	caps := []wire.ParameterCapabilityInterface{
		wire.NewCapMultiProtocol(wire.RF_IPv4_UC),
		wire.NewCapMultiProtocol(wire.RF_IPv6_UC),
		wire.NewCapFourOctetASNumber(s.conf.ASN),
		wire.NewCapAddPath([]*wire.CapAddPathTuple{
			wire.NewCapAddPathTuple(wire.RF_IPv4_UC, wire.BGP_ADD_PATH_RECEIVE),
			wire.NewCapAddPathTuple(wire.RF_IPv6_UC, wire.BGP_ADD_PATH_RECEIVE),
		}),
		wire.NewCapGracefulRestart(false, false, 0, nil),
		wire.NewCapLongLivedGracefulRestart(nil),
	}
	return wire.NewBGPOpenMessage(as, uint16(s.conf.HoldTime/time.Second), s.conf.RouterID,
		[]wire.OptionParameterInterface{wire.NewOptionParameterCapability(caps)})
}

func readCapabilities(open *wire.BGPOpen) capabilities {
	out := capabilities{
		asn: uint32(open.MyAS), addPath: map[wire.Family]wire.BGPAddPathMode{},
		restart: map[family]time.Duration{}, forwards: map[family]bool{}, longLived: map[family]time.Duration{},
	}
	for _, p := range open.OptParams {
		list, ok := p.(*wire.OptionParameterCapability)
		if !ok {
			continue
		}
		for _, c := range list.Capability {
			switch c := c.(type) {
			case *wire.CapFourOctetASNumber:
				out.asn = c.CapValue
			case *wire.CapAddPath:
				for _, t := range c.Tuples {
					if t.Mode&wire.BGP_ADD_PATH_SEND != 0 {
						out.addPath[t.Family] = wire.BGP_ADD_PATH_RECEIVE
					}
				}
			case *wire.CapGracefulRestart:
				for _, t := range c.Tuples {
					f := fromWire(wire.NewFamily(t.AFI, t.SAFI))
					out.restart[f] = time.Duration(c.Time) * time.Second
					out.forwards[f] = t.Flags&0x80 != 0
				}
			case *wire.CapLongLivedGracefulRestart:
				for _, t := range c.Tuples {
					f := fromWire(wire.NewFamily(t.AFI, t.SAFI))
					out.longLived[f] = time.Duration(t.RestartTime) * time.Second
				}
			}
		}
	}
	return out
}

// begin makes x the neighbour's session. Paths of the one before stay until End-of-RIB if the neighbour forwarded in
// between, and go at once if it did not (RFC 4724 §4.2).
func (s *Switch) begin(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := x.n
	if n.conn != nil { // the neighbour came back before we saw it leave
		n.conn.Close()
		s.stale(n)
	}
	n.stopTimers()
	n.conn, n.since = x.conn, time.Now()
	n.restart, n.longLived = x.caps.restart, x.caps.longLived
	for _, f := range []family{4, 6} {
		if !x.caps.forwards[f] {
			s.dropStale(n, f)
		}
	}
	s.signal()
}

// end takes note that x is over. After a NOTIFICATION, or without graceful restart, the paths go.
func (s *Switch) end(x *session, notified bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := x.n
	if n.conn != x.conn { // a newer session has taken over
		return
	}
	n.conn, n.since = nil, time.Now()
	if notified {
		n.restart, n.longLived = nil, nil
	}
	if !s.closed {
		s.stale(n)
	}
	s.signal()
}

// stale marks the paths of a lost session, and has them rank last after the restart time and go after the stale time.
func (s *Switch) stale(n *neighbor) {
	for _, f := range []family{4, 6} {
		wait, ok := n.restart[f]
		if !ok {
			s.rib.change(n.RouterID, f, func(r Route) (Route, bool) { return r, false })
			continue
		}
		s.rib.change(n.RouterID, f, func(r Route) (Route, bool) { r.Stale = true; return r, true })
		longer := n.longLived[f]
		n.after(s, wait, func() {
			s.rib.change(n.RouterID, f, func(r Route) (Route, bool) { r.LongLived = true; return r, longer > 0 })
		})
		n.after(s, wait+longer, func() { s.dropStale(n, f) })
	}
}

func (s *Switch) dropStale(n *neighbor, f family) {
	s.rib.change(n.RouterID, f, func(r Route) (Route, bool) { return r, !r.Stale })
}

// after does something later, under the lock, unless the timers of n are stopped before.
func (n *neighbor) after(s *Switch, wait time.Duration, do func()) {
	var t *time.Timer
	t = time.AfterFunc(wait, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, live := range n.staleTimers {
			if live == t {
				do()
				s.signal()
			}
		}
	})
	n.staleTimers = append(n.staleTimers, t)
}

func (n *neighbor) stopTimers() {
	for _, t := range n.staleTimers {
		t.Stop()
	}
	n.staleTimers = nil
}

func (x *session) keepAlive(stop <-chan struct{}) {
	if x.hold == 0 {
		return
	}
	ticker := time.NewTicker(x.hold / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			err := x.conn.SetWriteDeadline(time.Now().Add(x.hold))
			if err != nil || send(x.conn, wire.NewBGPKeepAliveMessage()) != nil {
				return
			}
		case <-stop:
			return
		}
	}
}

func send(conn net.Conn, m *wire.BGPMessage) error {
	b, err := m.Serialize()
	if err != nil {
		return err
	}
	_, err = conn.Write(b)
	return err
}

func readMessage(conn net.Conn, options *wire.MarshallingOption) (*wire.BGPMessage, error) {
	var head [wire.BGP_HEADER_LENGTH]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return nil, err
	}
	var h wire.BGPHeader
	if err := h.DecodeFromBytes(head[:]); err != nil {
		return nil, err
	}
	if h.Len < wire.BGP_HEADER_LENGTH || h.Len > wire.BGP_MAX_MESSAGE_LENGTH {
		return nil, fmt.Errorf("message of %d bytes", h.Len)
	}
	body := make([]byte, h.Len-wire.BGP_HEADER_LENGTH)
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, err
	}
	return wire.ParseBGPBody(&h, body, options)
}
