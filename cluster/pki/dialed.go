// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// dialed is a connection that we made. It ends with the certificate of the member at its other end; and once we have another one
// ourselves, some time before the one that it was made with ends: members end such connections at that moment, all of them at once, and
// a node of which no member hears anything is taken for dead.
type dialed struct {
	net.Conn
	mu     sync.Mutex
	timers []*time.Timer
	kept   *Dialed // that has it; nil: none
	why    error   // it was ended
}

// Dialed are open connections to members. The zero value is ready, and nil has none.
type Dialed struct {
	mu   sync.Mutex
	open map[*dialed]*x509.Certificate // of the member at the other end
}

func (l *Dialed) add(d *dialed, theirs *x509.Certificate) {
	if l == nil {
		return
	}
	d.mu.Lock()
	d.kept = l
	d.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[*dialed]*x509.Certificate{}
	}
	l.open[d] = theirs
}

func (l *Dialed) remove(d *dialed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, d)
}

func (l *Dialed) list() map[*dialed]*x509.Certificate {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.open)
}

// endRevoked ends connections to members whose certificates were revoked, and gives how many.
func (e *Endpoint) endRevoked() (ended int) {
	for d, theirs := range e.Dialed.list() {
		if err := e.checkRevoked(theirs, d.RemoteAddr().String()); err != nil {
			d.end(err)
			ended++
		}
	}
	return ended
}

// end closes a connection. Whoever reads from it or writes to it is told why.
func (d *dialed) end(why error) {
	d.mu.Lock()
	d.why = why
	d.mu.Unlock()
	_ = d.Close()
}

// because prefers why a connection was ended over what that looks like.
func (d *dialed) because(err error) error {
	if err == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why != nil {
		return d.why
	}
	return err
}

// Read implements net.Conn.
func (d *dialed) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	return n, d.because(err)
}

// Write implements net.Conn.
func (d *dialed) Write(b []byte) (int, error) {
	n, err := d.Conn.Write(b)
	return n, d.because(err)
}

// Close implements net.Conn.
func (d *dialed) Close() error {
	d.mu.Lock()
	for _, t := range d.timers {
		t.Stop()
	}
	d.timers = nil
	kept := d.kept
	d.mu.Unlock()
	if kept != nil {
		kept.remove(d)
	}
	return d.Conn.Close()
}

// endWith has a connection end with what both ends were known by. own is nil of a stranger.
func (e *Endpoint) endWith(d *dialed, own *tls.Certificate, theirs *x509.Certificate) {
	now := clock(e.Now)()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timers = append(d.timers, time.AfterFunc(theirs.NotAfter.Sub(now), func() { _ = d.Close() }))
	if own == nil {
		return
	}
	at := replaceFrom(own.Leaf, rand.Float64())
	d.timers = append(d.timers, time.AfterFunc(max(0, at.Sub(now)), func() {
		if e.Source.Material().Certificate.Leaf.SerialNumber.Cmp(own.Leaf.SerialNumber) != 0 {
			_ = d.Close()
		}
	}))
}

// replaceFrom is when a connection is to be made anew with a later certificate: within the middle of the time in which that is to be had.
func replaceFrom(cert *x509.Certificate, spread float64) time.Time {
	at, window := RenewFrom(cert)
	return at.Add(time.Duration((0.4 + spread*0.4) * float64(window)))
}
