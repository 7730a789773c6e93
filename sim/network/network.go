// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"math/rand/v2"
	"time"

	"fairlead.io/fairlead/sim/engine"
)

// GiveUp is how long a connection waits for what a cut link holds back before both ends see it broken: as long as the
// pings of HTTP/2 wait that a member sends.
const GiveUp = 25 * time.Second

// Options say how a healthy network behaves.
type Options struct {
	// Least is the latency of every message between machines, Spread the mean of what comes on top. Defaults 200 us
	// and 300 us.
	Least, Spread time.Duration
}

// Network joins the machines of one world.
type Network struct {
	world   *engine.World
	options Options
	random  *rand.Rand
	aliases map[string]string
	ports   map[endpoint]func(*Conn)
	links   map[link]*state
	off     map[string]int // machines without power
	conns   []*Conn        // in the order in which they were dialled, dialling ends only
	crowd   int            // how many conns there were when those that had ended were last forgotten
	orphans []*Conn        // dialling ends that wait for machines which have lost power, and with it the other ends
	last    uint64
}

// endpoint is a port of a machine.
type endpoint struct{ machine, port string }

// link is one direction between two machines.
type link struct{ from, to string }

// state is how a link is.
type state struct {
	cuts   int
	since  time.Duration // of the first cut
	extra  time.Duration // more latency
	jitter time.Duration // mean of more latency that differs from message to message
	loss   float64       // share of messages that have to be sent again
	losses []*float64    // what it comes of
	held   []*message    // in order
}

// New makes a network without machines: a name that somebody listens at or dials from is one.
func New(w *engine.World, o Options) *Network {
	if o.Least == 0 {
		o.Least = 200 * time.Microsecond
	}
	if o.Spread == 0 {
		o.Spread = 300 * time.Microsecond
	}
	return &Network{
		world: w, options: o, random: w.Random("network"), aliases: map[string]string{},
		ports: map[endpoint]func(*Conn){}, links: map[link]*state{}, off: map[string]int{},
	}
}

// Alias makes another name, such as an IP address, reach a machine.
func (n *Network) Alias(name, machine string) { n.aliases[name] = machine }

// Machine is the machine that a name reaches.
func (n *Network) Machine(name string) string {
	if m, ok := n.aliases[name]; ok {
		return m
	}
	return name
}

// Passes tells whether what is sent from one machine to another now arrives before something heals.
func (n *Network) Passes(from, to string) bool {
	from, to = n.Machine(from), n.Machine(to)
	s := n.links[link{from, to}]
	return n.off[from] == 0 && n.off[to] == 0 && (s == nil || s.cuts == 0)
}

// Listen serves a port of a machine until Close. It panics if somebody does so already: a world is built by one hand.
func (n *Network) Listen(machine, port string, accept func(*Conn)) {
	at := endpoint{machine, port}
	if n.ports[at] != nil {
		panic(fmt.Sprintf("port %s of %s: in use", port, machine))
	}
	n.ports[at] = accept
}

// Close frees a port. Connections stay.
func (n *Network) Close(machine, port string) { delete(n.ports, endpoint{machine, port}) }

// Dial connects a machine to a port of another. It does not wait: what is sent follows the dial. If nobody listens
// there, the connection is reset with the reason Refused.
func (n *Network) Dial(from, to, port string, hello []byte) *Conn {
	n.last++
	to = n.Machine(to)
	near := &Conn{n: n, id: n.last, local: from, peer: to, port: port, hello: hello}
	far := &Conn{n: n, id: n.last, local: to, peer: from, port: port, hello: hello}
	near.far, far.far = far, near
	n.sweep()
	n.conns = append(n.conns, near)
	near.send(&message{what: dial, data: hello})
	return near
}

// sweep forgets connections that have ended, whenever their number has doubled.
func (n *Network) sweep() {
	if len(n.conns) < 64 || len(n.conns) < 2*n.crowd {
		return
	}
	open := n.conns[:0]
	for _, c := range n.conns {
		if !c.over() {
			open = append(open, c)
		}
	}
	clear(n.conns[len(open):])
	n.conns, n.crowd = open, len(open)
}

func (n *Network) link(from, to string) *state {
	at := link{from, to}
	s := n.links[at]
	if s == nil {
		s = &state{}
		n.links[at] = s
	}
	return s
}

// local is how long a message within a machine takes.
const local = 10 * time.Microsecond

// latency draws how long a message takes.
func (n *Network) latency(from, to string, s *state) time.Duration {
	if from == to {
		return local
	}
	d := n.options.Least + time.Duration(n.random.ExpFloat64()*float64(n.options.Spread)) + s.extra
	if s.jitter > 0 {
		d += time.Duration(n.random.ExpFloat64() * float64(s.jitter))
	}
	for s.loss > 0 && n.random.Float64() < s.loss && d < GiveUp {
		d = 2*d + 200*time.Millisecond // TCP's least retransmission timeout, doubling
	}
	return d
}
