// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"net"
	"sync"

	"fairlead.io/fairlead/dataplane/bgp/supervisor"
)

// Child is a process that speaks, as far as its parent can tell: goroutines of the parent's process, at the other end of a pipe. What
// serves there is what ships. It implements supervisor.Child.
type Child struct {
	near, far net.Conn
	gone      chan struct{}

	mu      sync.Mutex
	speaker *Speaker // nil before it is open
	why     string   // it ended, in the words of whoever ended it; empty: it was told to
	ended   bool
}

// Start starts a child. The AS number and the router id of its speaker are what the parent says.
func Start(c Config) *Child {
	child := &Child{gone: make(chan struct{})}
	child.near, child.far = net.Pipe()
	c.Crash = func() { child.end("signal: aborted") }
	go child.serve(c)
	return child
}

func (c *Child) serve(of Config) {
	err := supervisor.Serve(c.far, func(s supervisor.Settings) (supervisor.Served, error) {
		of.ASN, of.RouterID = s.ASN, s.RouterID
		return c.open(of), nil
	}, func(uint64) {}) // its memory is the world's
	why := ""
	if err != nil {
		why = err.Error()
	}
	c.end(why)
}

// open opens the speaker, unless the process has ended meanwhile.
func (c *Child) open(of Config) *Speaker {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.speaker = New(of)
	if c.ended {
		c.speaker.Kill()
	}
	return c.speaker
}

// end is the end of the process. Only the first one counts.
func (c *Child) end(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended, c.why = true, why
	if c.speaker != nil {
		c.speaker.Kill()
	}
	_ = c.far.Close() // the parent reads its end
	close(c.gone)
}

// Conn implements supervisor.Child.
func (c *Child) Conn() net.Conn { return c.near }

// Gone implements supervisor.Child.
func (c *Child) Gone() <-chan struct{} { return c.gone }

// Kill implements supervisor.Child.
func (c *Child) Kill() { c.end("signal: killed") }

// Memory implements supervisor.Child: it has none of its own.
func (c *Child) Memory() uint64 { return 0 }

// Reason implements supervisor.Child.
func (c *Child) Reason() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

// LastWords implements supervisor.Child.
func (c *Child) LastWords() string { return "" }
