// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/sim/guest/fact"
	"fairlead.io/fairlead/sim/guest/port"
	"fairlead.io/fairlead/sim/guest/start"
)

// Where machines have certificates that can be revoked, both ends of a connection show theirs, and each judges the other's by the shipped
// deny-list: who dials tells it with the first words, and asks for the other one at a port of its own before it says anything else, as a
// handshake would. Which machine it is the network vouches for.

// certificateHeader carries it in requests.
const certificateHeader = "Fairlead-Certificate"

// handshakes are how a process judges certificates, and what it has open with whom.
type handshakes struct {
	g       *guest
	revoked pki.Revoked // nil: nobody's

	mu   sync.Mutex
	next int
	open map[int]shown
}

// shown is something that is open with a machine, and what that showed.
type shown struct {
	machine string
	cert    *x509.Certificate
	end     func(why error)
}

// on tells whether machines have certificates here.
func (h *handshakes) on() bool { return h.g.start.Certificate != nil }

// own is this machine's certificate in words; empty where there are none.
func (h *handshakes) own() string {
	c := h.g.start.Certificate
	if c == nil {
		return ""
	}
	return c.Serial + " " + strconv.FormatInt(c.Issued, 10)
}

// serve shows it to whoever asks.
func (h *handshakes) serve() {
	l := h.g.port.Listen(start.CertificatePort)
	for {
		c, err := l.AcceptConn()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte(h.own())) // whoever asked may have gone
		_ = c.CloseWrite()
		c.CloseRead()
	}
}

// read reads one. It never ends by itself: worlds step clocks by years.
func readCertificate(text string) (*x509.Certificate, error) {
	digits, issued, _ := strings.Cut(text, " ")
	serial, ok := new(big.Int).SetString(digits, 16)
	at, err := strconv.ParseInt(issued, 10, 64)
	if !ok || err != nil {
		return nil, fmt.Errorf("certificate %q: malformed", text)
	}
	return &x509.Certificate{SerialNumber: serial, NotBefore: time.Unix(at, 0), NotAfter: time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)}, nil
}

// of asks a machine for its certificate, and judges it.
func (h *handshakes) of(ctx context.Context, machine string) (*x509.Certificate, error) {
	c, err := h.g.port.Dial(ctx, machine, start.CertificatePort, nil)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Reset() })
	defer stop()
	text, err := c.ReadPiece()
	_ = c.Reset()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("handshake with %s: %w", machine, err)
	}
	return h.judge(machine, string(text))
}

// judge refuses a machine that shows a certificate which was revoked.
func (h *handshakes) judge(machine, text string) (*x509.Certificate, error) {
	cert, err := readCertificate(text)
	if err != nil {
		return nil, err
	}
	if why := h.revoked.Of(h.g.identity(machine), cert); why != "" {
		tell(fact.Barred{Peer: machine, Serial: pki.Serial(cert)})
		return nil, errors.New(why)
	}
	return cert, nil
}

// keep notes something that is open, to be ended once that machine is refused.
func (h *handshakes) keep(machine string, cert *x509.Certificate, end func(why error)) (over func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[int]shown{}
	}
	h.next++
	number := h.next
	h.open[number] = shown{machine, cert, end}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.open, number)
	}
}

// endStale ends what is open with machines that would be refused by now.
func (h *handshakes) endStale() {
	h.mu.Lock()
	var stale []shown
	for number := range h.next {
		one, ok := h.open[number+1]
		if ok && h.revoked.Of(h.g.identity(one.machine), one.cert) != "" {
			stale = append(stale, one)
		}
	}
	h.mu.Unlock()
	for _, one := range stale {
		_, err := h.judge(one.machine, pki.Serial(one.cert)+" "+strconv.FormatInt(one.cert.NotBefore.Unix(), 10))
		one.end(err)
	}
}

// kept is a connection that ends once its other end is refused.
type kept struct {
	net.Conn
	over func()
}

// Close implements net.Conn.
func (k kept) Close() error {
	k.over()
	return k.Conn.Close()
}

// keepConn has a connection end once its other end is refused.
func (h *handshakes) keepConn(c net.Conn, machine string, cert *x509.Certificate) net.Conn {
	return kept{c, h.keep(machine, cert, func(error) { _ = port.Below(c).Reset() })}
}

// keptBody is the body of an answer from a machine that may be refused meanwhile.
type keptBody struct {
	io.ReadCloser
	ctx  context.Context
	over func()
}

// Read implements io.Reader.
func (b keptBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, because(b.ctx, err)
}

// Close implements io.Closer.
func (b keptBody) Close() error {
	b.over()
	return b.ReadCloser.Close()
}

// errBarred is part of why something was ended.
var errBarred = errors.New("connection ended")

// because prefers why something was ended over what that looks like.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errBarred) {
		return cause
	}
	return err
}
