// SPDX-License-Identifier: Apache-2.0

// Package testswitch is a small BGP switch for a laptop and for tests: it accepts sessions, keeps what each neighbour
// announces, and shows where it would send packets. It needs no root and forwards nothing.
//
// It knows the parts of BGP that speakers of ours rely on: ADD-PATH, both kinds of graceful restart, ranking by local
// preference, AS path, origin and MED, and that equal paths share traffic. It is written without the server that the
// speakers use, so that the two do not share mistakes. Neighbours are told apart by their router id, since on a laptop
// they all dial from one address.
//
// Start reading at Switch; rib.go has the ranking, session.go the protocol.
package testswitch

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/internal/freeport"
)

// Neighbor is a speaker that the switch accepts.
type Neighbor struct {
	RouterID netip.Addr
	ASN      uint32
}

// Config is the switch's side. Zero fields get what the comments say.
type Config struct {
	Listen    netip.AddrPort // 127.0.0.1, a free port
	ASN       uint32         // 65001
	RouterID  netip.Addr     // 192.0.2.1
	HoldTime  time.Duration  // 30 s, or less if the neighbour asks for less
	Neighbors []Neighbor
	Logger    *slog.Logger // none
}

func (c Config) withDefaults() Config {
	c.ASN = cmp.Or(c.ASN, 65001)
	c.RouterID = cmp.Or(c.RouterID, netip.MustParseAddr("192.0.2.1"))
	c.HoldTime = cmp.Or(c.HoldTime, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func (c Config) listen() (net.Listener, error) {
	if !c.Listen.IsValid() {
		return freeport.Listen(netip.AddrFrom4([4]byte{127, 0, 0, 1})) // a switch that restarts listens there again
	}
	return net.Listen("tcp", c.Listen.String())
}

// Switch is a running switch.
type Switch struct {
	conf     Config
	listener net.Listener
	changed  chan struct{}
	wg       sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	neighbors map[netip.Addr]*neighbor // by router id
	conns     map[net.Conn]bool
	rib       rib
	lost      map[netip.Prefix]int
}

// neighbor is what the switch knows of a speaker, across its sessions.
type neighbor struct {
	Neighbor
	conn    net.Conn // of the open session; nil without one
	since   time.Time
	updates uint64
	// What the open or the last session negotiated. Without restart the paths go with the session.
	restart     map[family]time.Duration
	longLived   map[family]time.Duration
	staleTimers []*time.Timer
}

// Start starts a switch. Close ends it.
func Start(c Config) (*Switch, error) {
	c = c.withDefaults()
	l, err := c.listen()
	if err != nil {
		return nil, fmt.Errorf("start switch: %w", err)
	}
	s := &Switch{
		conf: c, listener: l, changed: make(chan struct{}, 1),
		neighbors: map[netip.Addr]*neighbor{}, conns: map[net.Conn]bool{}, rib: rib{}, lost: map[netip.Prefix]int{},
	}
	for _, n := range c.Neighbors {
		s.neighbors[n.RouterID] = &neighbor{Neighbor: n}
	}
	s.wg.Go(s.accept)
	return s, nil
}

// Addr is where the switch listens.
func (s *Switch) Addr() netip.AddrPort { return s.listener.Addr().(*net.TCPAddr).AddrPort() }

// ASN is the switch's AS number.
func (s *Switch) ASN() uint32 { return s.conf.ASN }

// Changed is ready to be received from, at least once, after the table or a session changed.
func (s *Switch) Changed() <-chan struct{} { return s.changed }

func (s *Switch) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Close ends the switch as if its power was cut: connections close, and the table is gone.
func (s *Switch) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.Close()
	}
	for _, n := range s.neighbors {
		n.stopTimers()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.wg.Wait()
	return err
}

// AddNeighbor makes the switch accept one more speaker, or change the AS number of one.
func (s *Switch) AddNeighbor(n Neighbor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.neighbors[n.RouterID]; ok {
		known.Neighbor = n
		return
	}
	s.neighbors[n.RouterID] = &neighbor{Neighbor: n}
}

// PeerStatus is how things stand with one neighbour.
type PeerStatus struct {
	Neighbor
	Established bool
	Since       time.Time // of the session or of its end; another value means that it bounced
	Updates     uint64    // UPDATE messages received in all sessions, End-of-RIB markers left out
}

// Peers returns how things stand with every neighbour, by router id.
func (s *Switch) Peers() []PeerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []PeerStatus
	for _, n := range s.neighbors {
		out = append(out, PeerStatus{n.Neighbor, n.conn != nil, n.since, n.updates})
	}
	slices.SortFunc(out, func(a, b PeerStatus) int { return a.RouterID.Compare(b.RouterID) })
	return out
}

// RIB returns where the switch sends packets: for each prefix, in order, the next hops of its best paths.
func (s *Switch) RIB() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rib.entries()
}

// Lost returns how often an UPDATE took the last path of a prefix.
func (s *Switch) Lost(p netip.Prefix) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[p]
}

// Routes returns all paths, by prefix, neighbour and identifier.
func (s *Switch) Routes() []Route {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rib.routes()
}

func (s *Switch) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			conn.Close()
			return
		}
		s.conns[conn] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			s.serve(conn)
			conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}
