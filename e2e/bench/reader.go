// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"
)

// reader is a BGP neighbour that takes the time of every UPDATE and sends none. Members dial it.
type reader struct {
	asn      uint32
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	wants map[netip.Prefix]chan update
}

// update is one path in an UPDATE.
type update struct {
	speaker   netip.Addr
	withdrawn bool
	at        time.Time
}

const readerHold = 30 // seconds

func newReader(t *bench, address netip.Addr, asn uint32) *reader {
	l, err := net.Listen("tcp4", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{asn: asn, listener: l, conns: map[net.Conn]bool{}, wants: map[netip.Prefix]chan update{}}
	r.wg.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

func (r *reader) address() netip.AddrPort { return r.listener.Addr().(*net.TCPAddr).AddrPort() }

func (r *reader) close() {
	_ = r.listener.Close() // nothing was written
	r.mu.Lock()
	for c := range r.conns {
		_ = c.Close() // likewise
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// want gives what will be said of a prefix from now on.
func (r *reader) want(p netip.Prefix) <-chan update {
	const room = 64 // more than three speakers say of one change
	c := make(chan update, room)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wants[p] = c
	return c
}

func (r *reader) forget(p netip.Prefix) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.wants, p)
}

func (r *reader) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.conns[conn] = true
		r.mu.Unlock()
		r.wg.Go(func() {
			defer conn.Close()
			_ = r.session(conn) // speakers come back; the benchmark notices what does not come
		})
	}
}

// session greets a speaker and takes in what it says.
func (r *reader) session(conn net.Conn) error {
	message, err := receive(conn, nil)
	if err != nil {
		return err
	}
	open, ok := message.Body.(*wire.BGPOpen)
	if !ok {
		return fmt.Errorf("message of type %d before OPEN", message.Header.Type)
	}
	ours, err := r.open()
	if err != nil {
		return err
	}
	if err := errors.Join(send(conn, ours), send(conn, wire.NewBGPKeepAliveMessage())); err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	r.wg.Go(func() { keepAlive(conn, stop) })
	options := &wire.MarshallingOption{AddPath: map[wire.Family]wire.BGPAddPathMode{wire.RF_IPv4_UC: wire.BGP_ADD_PATH_RECEIVE}}
	for {
		message, err := receive(conn, options)
		if err != nil {
			return err
		}
		if u, ok := message.Body.(*wire.BGPUpdate); ok {
			r.take(open.ID, u, time.Now())
		}
	}
}

// open offers IPv4 with ADD-PATH, and help with restarts, as switches do.
func (r *reader) open() (*wire.BGPMessage, error) {
	caps := []wire.ParameterCapabilityInterface{
		wire.NewCapMultiProtocol(wire.RF_IPv4_UC), wire.NewCapFourOctetASNumber(r.asn),
		wire.NewCapAddPath([]*wire.CapAddPathTuple{wire.NewCapAddPathTuple(wire.RF_IPv4_UC, wire.BGP_ADD_PATH_RECEIVE)}),
		wire.NewCapGracefulRestart(false, false, 0, nil),
	}
	return wire.NewBGPOpenMessage(uint16(r.asn), readerHold, netip.AddrFrom4([4]byte{192, 0, 2, 9}),
		[]wire.OptionParameterInterface{wire.NewOptionParameterCapability(caps)})
}

func keepAlive(conn net.Conn, stop <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if send(conn, wire.NewBGPKeepAliveMessage()) != nil {
				return
			}
		}
	}
}

func (r *reader) take(speaker netip.Addr, u *wire.BGPUpdate, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	tell := func(prefixes []wire.PathNLRI, withdrawn bool) {
		for _, p := range prefixes {
			prefix, _ := netip.ParsePrefix(p.NLRI.String())
			select {
			case r.wants[prefix] <- update{speaker, withdrawn, at}:
			default: // nobody asks, or has heard enough
			}
		}
	}
	tell(u.WithdrawnRoutes, true)
	tell(u.NLRI, false)
}

func send(conn net.Conn, m *wire.BGPMessage) error {
	b, err := m.Serialize()
	if err != nil {
		return err
	}
	_, err = conn.Write(b)
	return err
}

func receive(conn net.Conn, options *wire.MarshallingOption) (*wire.BGPMessage, error) {
	header := make([]byte, wire.BGP_HEADER_LENGTH)
	if _, err := io.ReadFull(conn, header); err != nil {
		return nil, err
	}
	body := make([]byte, max(int(binary.BigEndian.Uint16(header[16:18])), len(header))-len(header))
	if _, err := io.ReadFull(conn, body); err != nil {
		return nil, err
	}
	var h wire.BGPHeader
	if err := h.DecodeFromBytes(header); err != nil {
		return nil, err
	}
	return wire.ParseBGPBody(&h, body, options)
}
