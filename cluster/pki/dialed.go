// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
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
}

// Close implements net.Conn.
func (d *dialed) Close() error {
	d.mu.Lock()
	for _, t := range d.timers {
		t.Stop()
	}
	d.timers = nil
	d.mu.Unlock()
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
