// SPDX-License-Identifier: Apache-2.0

// Package transport carries Raft's messages between members over mutual TLS.
//
// It knows how to listen, dial and bound connections; who may talk to whom is decided by what proves it, such as a TLS configuration that is
// handed in, and during the handshake, before a byte reaches the library. Start reading at Listen.
package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/internal/connlimit"
)

const (
	// messageTimeout bounds a message and its answer. A peer that was cut off is retried soon after the network
	// heals; a disk that takes longer than this for one write makes the leader send again, which is harmless.
	messageTimeout = 2 * time.Second
	// progressWithin bounds how long the next bytes of a message may take that has begun. Of a snapshot, which takes longer as a whole, the
	// library reads on its main goroutine: without a bound a sender that lost its power keeps the receiver from voting, and two connected members
	// from having a leader.
	progressWithin = 3 * time.Second
	// connPool is how many idle connections are kept to each peer.
	connPool = 3
)

// limits of the Raft port. A peer needs five connections at most (heartbeats, those sent at once, pipeline, votes, snapshot).
func limits() connlimit.Limits {
	return connlimit.Limits{
		Strangers:      connlimit.Room{Total: 256, PerKey: 64},
		Known:          connlimit.Room{Total: 512, PerKey: 32},
		StrangerWithin: 5 * time.Second,
		MessageWithin:  progressWithin,
		WriteWithin:    10 * time.Second,
	}
}

// Options says how to reach others and to be reached.
type Options struct {
	// Listener accepts plain TCP connections; the transport owns it.
	Listener net.Listener
	// Advertise is the address that others dial, host:port; optional, the listener's by default.
	Advertise string
	// Members are addresses of others that are known beforehand: strangers take no places from there; optional.
	Members []netip.Addr
	// Prove is used for every accepted connection.
	Prove Prove
	// Dial connects to a member and completes the handshake, proving who both are.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Refused is told of every handshake that failed; optional.
	Refused func(remote net.Addr, err error)
	Log     *slog.Logger
	Metrics *connlimit.Metrics // optional
}

// Transport is a raft.Transport over mutual TLS.
type Transport struct {
	*Messages
	layer *layer
}

// Listen starts to accept members. Close ends it.
func Listen(o Options) (*Transport, error) {
	if o.Listener == nil || o.Prove == nil || o.Dial == nil || o.Log == nil {
		return nil, errors.New("raft transport: listener, prove, dial and log are required")
	}
	advertise := o.Listener.Addr()
	if o.Advertise != "" {
		advertise = address(o.Advertise)
	}
	l := &layer{
		o: o, advertise: advertise, ready: make(chan net.Conn), done: make(chan struct{}),
		listener: connlimit.Limit(o.Listener, connlimit.Options{Port: "raft", Limits: limits(), Metrics: o.Metrics, Members: o.Members}),
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
	listener  *connlimit.Listener
	ready     chan net.Conn
	done      chan struct{}
	closing   sync.Once
	running   sync.WaitGroup
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
		err = l.listener.Close()
		l.listener.Abort()
	})
	return err
}

func (l *layer) accept() {
	defer l.running.Done()
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			select {
			case <-l.done:
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors, most likely
				l.o.Log.Warn("raft connection not accepted", "error", err)
				continue
			}
		}
		l.running.Add(1)
		go func() {
			defer l.running.Done()
			l.handshake(conn)
		}()
	}
}

// handshake proves who is there before the library sees the connection. It runs beside further accepts, so that a
// client that says nothing holds up nobody; its end comes by the limits of the port.
func (l *layer) handshake(raw net.Conn) {
	conn, err := l.prove(raw)
	if err != nil {
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

// prove finishes the handshake, and gives the connection a place among those of its member.
func (l *layer) prove(raw net.Conn) (net.Conn, error) {
	conn, name, err := l.o.Prove(raw)
	if err != nil {
		return nil, err
	}
	if !connlimit.Of(raw).Vouch(connlimit.Known, name) {
		return nil, fmt.Errorf("%s has too many connections", name)
	}
	return conn, nil
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
