// SPDX-License-Identifier: Apache-2.0

// Package transport carries Raft's messages between members over mutual TLS.
//
// It knows how to listen, dial and bound connections; who may talk to whom is decided by the TLS configurations that
// are handed in, and during the handshake, before a byte reaches the library. Start reading at Listen.
package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

const (
	// messageTimeout bounds a message and its answer. A peer that was cut off is retried soon after the network
	// heals; a disk that takes longer than this for one write makes the leader send again, which is harmless.
	messageTimeout = 2 * time.Second
	// handshakeTimeout bounds what an unknown client can hold on to.
	handshakeTimeout = 2 * time.Second
	// maxConns bounds the connections that others hold to this member. A peer needs four at most (heartbeats,
	// pipeline, votes, snapshot), so that sixty-four leave room for reconnects of nine members.
	maxConns = 64
	// connPool is how many idle connections are kept to each peer.
	connPool = 3
)

// Options says how to reach others and to be reached.
type Options struct {
	// Listener accepts plain TCP connections; the transport owns it.
	Listener net.Listener
	// Advertise is the address that others dial, host:port; optional, the listener's by default.
	Advertise string
	// Server is used for every accepted connection. It must require and verify a member's certificate.
	Server *tls.Config
	// Dial connects to a member and completes the handshake, proving who both are.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Refused is told of every handshake that failed; optional.
	Refused func(remote net.Addr, err error)
	Log     *slog.Logger
}

// Transport is a raft.Transport over mutual TLS.
type Transport struct {
	*Messages
	layer *layer
}

// Listen starts to accept members. Close ends it.
func Listen(o Options) (*Transport, error) {
	if o.Listener == nil || o.Server == nil || o.Dial == nil || o.Log == nil {
		return nil, errors.New("raft transport: listener, server, dial and log are required")
	}
	if o.Server.ClientAuth != tls.RequireAndVerifyClientCert && o.Server.GetConfigForClient == nil &&
		o.Server.VerifyConnection == nil {
		return nil, errors.New("raft transport: the server configuration does not verify client certificates")
	}
	advertise := o.Listener.Addr()
	if o.Advertise != "" {
		advertise = address(o.Advertise)
	}
	l := &layer{
		o: o, advertise: advertise, ready: make(chan net.Conn), done: make(chan struct{}),
		slots: make(chan struct{}, maxConns), open: map[net.Conn]struct{}{},
	}
	l.running.Add(1)
	go l.accept()
	return &Transport{layer: l, Messages: Over(l)}, nil
}

// Over carries Raft's messages over connections that somebody else makes, bounded as those of Listen are.
func Over(stream raft.StreamLayer) *Messages {
	return &Messages{
		losses: map[raft.ServerID]*atomic.Uint64{},
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: stream, MaxPool: connPool, Timeout: messageTimeout,
			Logger: hclog.NewNullLogger(), // cluster logs what matters, with the peer's name
		}),
	}
}

// Close ends the transport and every connection of it.
func (t *Transport) Close() error {
	err := t.NetworkTransport.Close()
	t.NetworkTransport.CloseStreams()
	t.layer.running.Wait()
	return err
}

// address is a net.Addr of what was configured; it may be a name.
type address string

func (a address) Network() string { return "tcp" }
func (a address) String() string  { return string(a) }

// layer is the raft.StreamLayer: connections come out of Accept with their handshake done.
type layer struct {
	o         Options
	advertise net.Addr
	ready     chan net.Conn
	slots     chan struct{} // one per accepted connection
	done      chan struct{}
	closing   sync.Once
	running   sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]struct{} // accepted connections, so that Close ends them
}

// Addr is the address that others know this member by.
func (l *layer) Addr() net.Addr { return l.advertise }

// Accept gives the next connection of a member.
func (l *layer) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close stops accepting and ends accepted connections: the library's handlers wait on them.
func (l *layer) Close() error {
	var err error
	l.closing.Do(func() {
		close(l.done)
		err = l.o.Listener.Close()
		for _, c := range l.accepted() {
			_ = c.Close() // its reader notices
		}
	})
	return err
}

func (l *layer) accepted() []net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}

func (l *layer) accept() {
	defer l.running.Done()
	for {
		select {
		case l.slots <- struct{}{}: // wait for room before taking another connection off the kernel's queue
		case <-l.done:
			return
		}
		raw, err := l.o.Listener.Accept()
		if err != nil {
			<-l.slots
			select {
			case <-l.done:
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors, most likely
				l.o.Log.Warn("raft connection not accepted", "error", err)
				continue
			}
		}
		conn := l.track(raw)
		l.running.Add(1)
		go func() {
			defer l.running.Done()
			l.handshake(conn)
		}()
	}
}

// handshake proves who is there before the library sees the connection. It runs beside further accepts, so that a
// client that says nothing holds up nobody.
func (l *layer) handshake(raw net.Conn) {
	conn := tls.Server(raw, l.o.Server)
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		if l.o.Refused != nil {
			l.o.Refused(raw.RemoteAddr(), err)
		}
		return
	}
	select {
	case l.ready <- conn:
	case <-l.done:
		_ = raw.Close()
	}
}

// Dial connects to a member.
func (l *layer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := l.o.Dial(ctx, string(to))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", to, err)
	}
	return conn, nil
}

// track remembers an accepted connection until it is closed.
func (l *layer) track(raw net.Conn) net.Conn {
	c := &tracked{Conn: raw, layer: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[c] = struct{}{}
	return c
}

type tracked struct {
	net.Conn
	layer *layer
	once  sync.Once
}

// NetConn is the connection that the listener gave.
func (c *tracked) NetConn() net.Conn { return c.Conn }

// Close gives the connection's place to another one.
func (c *tracked) Close() error {
	c.once.Do(func() {
		c.layer.mu.Lock()
		delete(c.layer.open, c)
		c.layer.mu.Unlock()
		<-c.layer.slots
	})
	return c.Conn.Close()
}
