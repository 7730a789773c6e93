// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/connlimit"
)

// connectWithin bounds the attempt to reach one member, so that the next one has its chance.
const connectWithin = 3 * time.Second

// worthCompressing is the size of a message, in bytes, from which on it is compressed: below, that takes several times
// the work of everything else that a call does, and spares no packet.
const worthCompressing = 4 << 10

// ClientOptions is what a Client is made of.
type ClientOptions struct {
	Endpoint *pki.Endpoint
	Servers  []string     // host:port of members' APIs; one that cannot be reached is passed over
	Dial     pki.DialFunc // optional, the system's
}

// Client calls the API of a member. It keeps one connection, to the first of its servers that it could reach,
// and looks for another when that breaks; a call that was under way then fails. Errors of its calls are
// *Refusal where the member had something to say, Unreachable (errors.Is) if no member could be connected to, and
// see Unsure for what to think of the others.
type Client struct {
	Raft     fairleadv1connect.RaftServiceClient
	Join     fairleadv1connect.JoinServiceClient
	Record   fairleadv1connect.RecordServiceClient
	Agent    fairleadv1connect.AgentServiceClient
	Liveness fairleadv1connect.LivenessServiceClient
	Enrol    fairleadv1connect.EnrolServiceClient

	idle interface{ CloseIdleConnections() }
	last func() string
}

// NewClient makes a client. It connects when it is first used.
func NewClient(o ClientOptions) *Client {
	if o.Dial == nil {
		o.Dial = (&net.Dialer{KeepAliveConfig: connlimit.KeepAlive()}).DialContext
	}
	d := &dialer{endpoint: o.Endpoint, dial: o.Dial, servers: o.Servers}
	// To the transport this is HTTP/2 over plain connections: the dialer does TLS itself, because it has to know
	// what the server thinks of our certificate before it settles for that server.
	transport := &http.Transport{
		DialContext:     d.connect,
		Protocols:       new(http.Protocols),
		IdleConnTimeout: idleWithin,
		HTTP2:           &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWithin},
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return newClient(&http.Client{Transport: transport}, d.last)
}

// NewClientOver makes a client of the member at server, whose requests doer carries there, however it does. An error
// of it that is Unreachable (errors.Is) says that a request surely did not get there. A doer that has a
// CloseIdleConnections, as *http.Client, is told when idle connections are given up. Server is always that member.
func NewClientOver(doer connect.HTTPClient, server string) *Client {
	return newClient(doer, func() string { return server })
}

func newClient(doer connect.HTTPClient, last func() string) *Client {
	const base = "http://fairlead" // never looked up: the doer knows where it goes
	options := []connect.ClientOption{
		connect.WithInterceptors(clientErrors{}, handOn{}),
		connect.WithReadMaxBytes(largeMessage),
	}
	c := &Client{
		Raft:     fairleadv1connect.NewRaftServiceClient(doer, base, options...),
		Join:     fairleadv1connect.NewJoinServiceClient(doer, base, options...),
		Record:   fairleadv1connect.NewRecordServiceClient(doer, base, options...),
		Agent:    fairleadv1connect.NewAgentServiceClient(doer, base, options...),
		Liveness: fairleadv1connect.NewLivenessServiceClient(doer, base, options...),
		Enrol:    fairleadv1connect.NewEnrolServiceClient(doer, base, options...),
		last:     last,
	}
	c.idle, _ = doer.(interface{ CloseIdleConnections() })
	return c
}

// Server is the address of the member that was reached last; empty before the first call.
func (c *Client) Server() string { return c.last() }

// Close gives up idle connections.
func (c *Client) Close() {
	if c.idle != nil {
		c.idle.CloseIdleConnections()
	}
}

// dialer connects to whichever of its servers answers, beginning with the one that did last.
type dialer struct {
	endpoint *pki.Endpoint
	dial     pki.DialFunc
	servers  []string

	mu      sync.Mutex
	current int
	reached bool
}

func (d *dialer) connect(ctx context.Context, _, _ string) (net.Conn, error) {
	d.mu.Lock()
	first := d.current
	d.mu.Unlock()
	var failures []error
	for i := range d.servers {
		next := (first + i) % len(d.servers)
		conn, err := d.connectTo(ctx, d.servers[next])
		if err == nil {
			d.mu.Lock()
			d.current, d.reached = next, true
			d.mu.Unlock()
			return conn, nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, &unreachable{failures}
}

// connectTo returns once the server has spoken. With TLS 1.3 it has not looked at our certificate yet when our end
// of the handshake is done; only its first bytes, the settings of HTTP/2, show that it took it.
func (d *dialer) connectTo(ctx context.Context, server string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	conn, err := d.endpoint.Dial(ctx, d.dial, pki.API, server)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	heard := make([]byte, 512)
	n, err := conn.Read(heard)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil && conn.ConnectionState().NegotiatedProtocol != "h2" {
		err = errors.New("it does not speak HTTP/2")
	}
	if err != nil {
		_ = conn.Close() // of no use any more, and why is known
		return nil, fmt.Errorf("connect to %s: %w", server, pki.Explain(err))
	}
	return &heardConn{Conn: conn, heard: heard[:n]}, nil
}

// heardConn is a connection from which something was read already.
type heardConn struct {
	net.Conn
	heard []byte
}

func (c *heardConn) Read(p []byte) (int, error) {
	if len(c.heard) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.heard)
	c.heard = c.heard[n:]
	return n, nil
}

func (d *dialer) last() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.reached {
		return ""
	}
	return d.servers[d.current]
}

// unreachable is why none of the servers could be connected to, in one line.
type unreachable struct{ failures []error }

func (e *unreachable) Error() string {
	if len(e.failures) == 0 {
		return "connect to the group: no server named"
	}
	texts := make([]string, len(e.failures))
	for i, failure := range e.failures {
		texts[i] = failure.Error()
	}
	return strings.Join(texts, "; ")
}

func (e *unreachable) Unwrap() []error { return append(slices.Clone(e.failures), Unreachable) }

// handOn marks requests that a member hands on for somebody; see forwarding.
type handOn struct{}

func (handOn) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		addForwarding(ctx, req.Header())
		return next(ctx, req)
	}
}

func (handOn) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		addForwarding(ctx, conn.RequestHeader())
		return conn
	}
}

func (handOn) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
