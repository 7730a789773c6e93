// SPDX-License-Identifier: Apache-2.0

// Package bubble lets tests run code of guests natively: with goroutines in a bubble of package synctest, against models
// in a world whose time is the bubble's.
//
// It promises that nobody else touches the world while Do runs. Start reading at Test.
package bubble

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/network"
)

// World is a world with a network that goes on as time passes in the bubble.
type World struct {
	World   *engine.World
	Network *network.Network

	begin   time.Time
	mu      sync.Mutex // held by whoever touches the world
	trouble []string
	stop    chan struct{}
	stopped chan struct{}
}

// Test runs a test in a bubble, with a world of its own. It fails if something went wrong in the world.
func Test(t *testing.T, seed uint64, test func(*testing.T, *World)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed)
		test(t, w)
		for _, what := range w.end() {
			t.Error(what)
		}
	})
}

// newWorld makes a world in the bubble that it is called in. end has to be called there, too.
func newWorld(seed uint64) *World {
	w := engine.New(seed)
	b := &World{
		World: w, Network: network.New(w, network.Options{}), begin: time.Now(), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	w.Hear(func(e event.Stamped) {
		switch e := e.Event.(type) {
		case event.Refused:
			b.trouble = append(b.trouble, fmt.Sprintf("%s refused %s of %s: %s", e.Model, e.What, e.By, e.Why))
		case event.Foreign:
			b.trouble = append(b.trouble, fmt.Sprintf("%s changed at %s what is not ours: %s", e.By, e.Where, e.What))
		}
	})
	go b.drive()
	return b
}

// drive keeps the world's time at the bubble's.
func (b *World) drive() {
	defer close(b.stopped)
	for {
		select {
		case <-b.stop:
			return
		case <-time.After(time.Millisecond):
		}
		b.Do(func() {
			if err := b.World.Run(time.Since(b.begin)); err != nil {
				b.trouble = append(b.trouble, err.Error())
			}
		})
	}
}

// Do does something to the world.
func (b *World) Do(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// end ends the world, and lists what went wrong in it: everything that a model refused, and changes of what is not
// ours.
func (b *World) end() []string {
	close(b.stop)
	<-b.stopped
	return b.trouble
}

// Until waits until something is so, for at most a while.
func (b *World) Until(most time.Duration, is func() bool) bool {
	for range most / time.Millisecond {
		ok := false
		b.Do(func() { ok = is() })
		if ok {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// Process is what dials from a machine.
type Process struct {
	b       *World
	machine string
	mu      sync.Mutex
	conns   []*conn
	dead    bool
}

// Process makes a process on a machine.
func (b *World) Process(machine string) *Process { return &Process{b: b, machine: machine} }

// Kill ends a process: its connections are reset.
func (p *Process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for _, c := range p.conns {
		p.b.Do(c.far.Reset)
		c.finish()
	}
}

// Dial connects to a port of a machine.
func (p *Process) Dial(_ context.Context, host, port string, hello []byte) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil, io.ErrClosedPipe
	}
	c := &conn{b: p.b, local: host == p.machine, in: make(chan []byte, inbound), over: make(chan struct{})}
	p.b.Do(func() {
		c.far = p.b.Network.Dial(p.machine, host, port, hello)
		c.far.Handle(func(data []byte) { c.in <- data }, func(bool) { c.finish() })
	})
	p.conns = append(p.conns, c)
	return c, nil
}

// inbound bounds what waits to be read. The world stands still when it is full.
const inbound = 1 << 12

// conn is a network connection as a net.Conn, without addresses and deadlines.
type conn struct {
	net.Conn
	b     *World
	far   *network.Conn
	local bool // to the own machine
	in    chan []byte
	rest  []byte
	over  chan struct{}
	once  sync.Once
}

func (c *conn) finish() { c.once.Do(func() { close(c.over) }) }

// Read implements net.Conn: what has arrived is read before the end.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		select {
		case c.rest = <-c.in:
		default:
			select {
			case c.rest = <-c.in:
			case <-c.over:
				return 0, io.EOF
			}
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.b.Do(func() {
		c.far.Send(slices.Clone(b))
		if c.local {
			c.b.hurry()
		}
	})
	return len(b), nil
}

// hurry has the answer to a call within a machine arrive at once. A goroutine may hold a mutex that others wait for
// while it waits for the answer, and a bubble's time stands still then.
func (b *World) hurry() {
	if err := b.World.Run(b.World.Now() + callTime); err != nil {
		b.trouble = append(b.trouble, err.Error())
	}
}

// callTime is how long a call to the own machine and its answer take at most.
const callTime = 50 * time.Microsecond

// Close implements net.Conn.
func (c *conn) Close() error {
	c.b.Do(c.far.End)
	c.finish()
	return nil
}
