// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// Options is what a Limiter is made of.
type Options struct {
	Port    string // its name, for metrics
	Limits  Limits
	Metrics *Metrics     // optional
	Members []netip.Addr // optional: sources that have places apart before anybody came from there
}

// Limiter bounds the connections of one port, or of several that share their places.
type Limiter struct {
	o Options

	mu       sync.Mutex
	pools    [stages][2]*pool // the second for sources that are known lately
	holding  map[*place]*Conn
	acquired acquaintances
}

// New makes a Limiter without connections.
func New(o Options) *Limiter {
	if most, limited := descriptors(); limited {
		o.Limits = o.Limits.fit(most)
	}
	l := &Limiter{o: o, holding: map[*place]*Conn{}, acquired: acquaintancesOf(o.Members)}
	for s := range stages {
		for i := range l.pools[s] {
			l.pools[s][i] = newPool(o.Limits.room(s, i == 1), s == Known)
		}
	}
	o.Metrics.prepare(o.Port)
	return l
}

// Limit bounds the connections of one listener.
func Limit(plain net.Listener, o Options) *Listener { return New(o).Over(plain) }

// Over bounds the connections of a listener.
func (l *Limiter) Over(plain net.Listener) *Listener { return &Listener{plain, l} }

// Listener accepts whoever comes at once, and ends others where there are too many. It is a net.Listener, whose connections
// are *Conn.
type Listener struct {
	net.Listener
	*Limiter
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		plain, err := l.Listener.Accept()
		switch {
		case err == nil:
		case (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && l.giveUpOne():
			continue
		default:
			return nil, err
		}
		if c := l.admit(plain); c != nil {
			return c, nil
		}
	}
}

// admit gives a new connection a place; nil if it is the one that has to go.
func (l *Limiter) admit(plain net.Conn) *Conn {
	noticeDeath(plain)
	c := &Conn{Conn: plain, limiter: l, source: Source(plain.RemoteAddr())}
	l.mu.Lock()
	out, reason := l.moveLocked(c, Silent, c.source)
	if out != c {
		c.limitLocked()
	}
	l.mu.Unlock()
	l.end(out, reason)
	if out == c {
		return nil
	}
	return c
}

// moveLocked gives c a place at a Stage instead of the one that it has, and takes out whoever goes for it.
func (l *Limiter) moveLocked(c *Conn, to Stage, key string) (out *Conn, reason string) {
	now := time.Now()
	l.leaveLocked(c)
	reserved := 0
	if to != Known && l.acquired.has(c.source, now) {
		reserved = 1
	}
	taken, left, reason := l.pools[to][reserved].enter(key, now)
	c.place, c.stage = taken, to
	l.holding[taken] = c
	l.o.Metrics.move(l.o.Port, to, 1)
	if left != nil {
		out = l.holding[left]
		l.leaveLocked(out)
		out.ended = true
	}
	return out, reason
}

// leaveLocked gives back the place of c, if it has one.
func (l *Limiter) leaveLocked(c *Conn) {
	if c.place == nil {
		return
	}
	c.place.leave()
	delete(l.holding, c.place)
	c.place = nil
	l.o.Metrics.move(l.o.Port, c.stage, -1)
}

// giveUpOne ends a connection of somebody who has proven nothing, for its descriptor. It tells whether there was one.
func (l *Limiter) giveUpOne() bool {
	l.mu.Lock()
	var out *Conn
	for s := Silent; s < Known && out == nil; s++ {
		for _, p := range l.pools[s] {
			if x := p.first(); x != nil {
				out = l.holding[x]
				l.leaveLocked(out)
				out.ended = true
				break
			}
		}
	}
	l.mu.Unlock()
	l.end(out, reasonDescriptors)
	return out != nil
}

// end closes a connection that has no place any more; nil is nobody.
func (l *Limiter) end(c *Conn, reason string) {
	if c == nil {
		return
	}
	l.o.Metrics.closed(l.o.Port, reason)
	c.abort()
}

// Open is how many connections hold a place at each Stage.
func (l *Limiter) Open() (open [stages]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s, pools := range l.pools {
		open[s] = pools[0].size + pools[1].size
	}
	return open
}

// Abort ends every connection.
func (l *Limiter) Abort() {
	l.mu.Lock()
	var all []*Conn
	for _, c := range l.holding {
		all = append(all, c)
	}
	for _, c := range all {
		l.leaveLocked(c)
		c.ended = true
	}
	l.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // its reader notices
	}
}
