// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Clients are the open connections of those whom a server admitted, so that a connection ends where a handshake would be refused by
// now. The zero value is ready.
type Clients struct {
	mu   sync.Mutex
	open map[*Conn]*client
}

// client is what one was admitted with.
type client struct {
	port         Port
	ours, theirs Membership
	identity     Identity
	chain        []*x509.Certificate
	roots        *x509.CertPool // that it was verified with last
}

func (c *Clients) add(conn *Conn, one *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[*Conn]*client{}
	}
	c.open[conn] = one
}

func (c *Clients) remove(conn *Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// list copies what there is: what a certificate is worth is found out without holding up handshakes.
func (c *Clients) list() map[*Conn]*client {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[*Conn]*client, len(c.open))
	for conn, one := range c.open {
		out[conn] = one
	}
	return out
}

// keep remembers the connection of a client that was admitted.
func (e *Endpoint) keep(conn net.Conn, one client) {
	held, watched := below(conn)
	if e.Clients == nil || !watched || len(one.chain) == 0 {
		return
	}
	if id, err := Identify(one.chain[0]); err == nil {
		one.identity = id
	}
	held.kept.Store(e.Clients)
	e.Clients.add(held, &one)
}

// below finds the *Conn below connections that others wrapped around it.
func below(conn net.Conn) (*Conn, bool) {
	for {
		switch c := conn.(type) {
		case *Conn:
			return c, true
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil, false
		}
	}
}

// EndStale ends the connections of clients that a handshake would refuse by now, and those to members that are revoked, and gives how
// many: of clients, the certificate is over or was revoked, or its CA is trusted no more. One goroutine calls it, now and then and when
// something was revoked.
func (e *Endpoint) EndStale() int {
	ended := e.endRevoked()
	if e.Clients == nil {
		return ended
	}
	roots, now := e.Source.Material().Roots, clock(e.Now)()
	for conn, c := range e.Clients.list() {
		refused := e.stale(c, roots, now)
		if refused == nil {
			continue
		}
		refused.port, refused.remote, refused.ours, refused.theirs, refused.level = c.port, conn.RemoteAddr(), c.ours, c.theirs, slog.LevelWarn
		refused.ended = true
		e.Refusals.record(*refused)
		_ = conn.Close() // whoever reads from it or writes to it notices
		ended++
	}
	return ended
}

// stale tells why a client would be refused now. Signatures are verified anew only where that can make a difference: there may be
// thousands of connections.
func (e *Endpoint) stale(c *client, roots *x509.CertPool, now time.Time) *refusal {
	if c.roots == roots && !now.After(c.chain[0].NotAfter) && e.Revoked.Of(c.identity, c.chain[0]) == "" {
		return nil
	}
	refused := e.admit(c.port, roots, c.theirs, c.chain)
	c.roots = roots
	return refused
}
