// SPDX-License-Identifier: Apache-2.0

package network

import (
	"time"

	"fairlead.io/fairlead/sim/event"
)

// Refused is the reason of a reset where nobody listened.
const Refused = "refused"

// Conn is one end of a connection.
type Conn struct {
	n           *Network
	id          uint64
	local, peer string
	port        string
	hello       []byte
	far         *Conn

	accepted bool // the far end knows of it; on the dialling end
	onData   func([]byte)
	onEnd    func(reset bool)
	early    []*message // arrived before Handle
	handled  bool

	numbers  uint64              // of messages sent
	arrived  uint64              // of those, how many were handed to the far end
	ahead    map[uint64]*message // arrived before an earlier one that a cut had kept
	torn     bool                // one of them will never arrive: of what follows it only a reset counts
	arrives  time.Duration       // when the newest message to the far end arrives at the earliest
	sent     time.Duration       // when it was sent
	ended    bool                // this end said its last word
	dead     bool                // broken, or nobody here any more
	heardEnd bool                // the far end's last word arrived
	why      string
	give     func() // called once when the connection is of no use to this end any more
}

// what a message is.
const (
	dial  = "dial"
	data  = "data"
	end   = "end"
	reset = "reset"
)

// message is on its way from one end to the other.
type message struct {
	from   *Conn
	number uint64 // of the messages of its connection and direction
	what   string
	data   []byte
	why    string // of a reset
	sent   time.Duration
	held   time.Duration // since when a cut link keeps it
}

// Peer is the machine at the other end.
func (c *Conn) Peer() string { return c.peer }

// Port is the port that was dialled.
func (c *Conn) Port() string { return c.port }

// Hello is what the dialling end said with its dial.
func (c *Conn) Hello() []byte { return c.hello }

// Why is the reason of a reset, where there is one.
func (c *Conn) Why() string { return c.why }

// Handle says what to do with what arrives. onEnd is called once: with false after the far end's last word, with true
// when the connection broke. What arrived before is handed over at once. Either may be nil.
func (c *Conn) Handle(onData func([]byte), onEnd func(reset bool)) {
	c.onData, c.onEnd, c.handled = onData, onEnd, true
	early := c.early
	c.early = nil
	for _, m := range early {
		c.take(m)
	}
}

// Send sends data, which then belongs to the connection. After End, or on a broken connection, it does nothing.
func (c *Conn) Send(b []byte) {
	if !c.ended && !c.dead {
		c.send(&message{what: data, data: b})
	}
}

// End says that nothing more follows from this end. What the other end still says arrives.
func (c *Conn) End() {
	if c.ended || c.dead {
		return
	}
	c.ended = true
	c.send(&message{what: end})
	c.settle()
}

// Reset breaks the connection: this end forgets it at once, the other one learns it when the reset arrives.
func (c *Conn) Reset() { c.breakWith("") }

func (c *Conn) breakWith(why string) {
	if c.dead {
		return
	}
	c.send(&message{what: reset, why: why})
	c.drop()
}

// drop forgets this end without a word.
func (c *Conn) drop() {
	if !c.dead {
		c.dead, c.early = true, nil
		c.settle()
	}
}

// over tells whether neither end has any use for the connection.
func (c *Conn) over() bool { return c.useless() && c.far.useless() }

func (c *Conn) useless() bool { return c.dead || c.ended && c.heardEnd }

func (c *Conn) settle() {
	if !c.useless() {
		return
	}
	if give := c.give; give != nil {
		c.give = nil
		give()
	}
}

// burst is within what time messages are one: they leave in the same packet, or in packets right behind each other, and
// who reads finds them together.
const burst = 10 * time.Microsecond

// send puts a message on the link.
func (c *Conn) send(m *message) {
	n, now := c.n, c.n.world.Now()
	joins := c.numbers > 0 && now-c.sent <= burst && now < c.arrives
	m.from, m.number, m.sent = c, c.numbers, now
	c.numbers++
	c.sent = now
	if n.off[c.local] > 0 {
		return // nobody is there to send
	}
	s := n.link(c.local, c.peer)
	if s.cuts > 0 {
		n.hold(s, m)
		return
	}
	if joins {
		n.convey(m, s, 0)
		return
	}
	n.convey(m, s, n.latency(c.local, c.peer, s))
}

// convey has a message arrive after d, never before an earlier one of its connection.
func (n *Network) convey(m *message, s *state, d time.Duration) {
	c := m.from
	c.arrives = max(c.arrives, n.world.Now()+d)
	n.world.At(c.arrives, func() { n.arrive(m, s) })
}

// arrive hands a message over, unless the link was cut while it was on its way.
func (n *Network) arrive(m *message, s *state) {
	c := m.from
	switch {
	case s.cuts > 0:
		n.hold(s, m)
		return
	case n.off[c.peer] > 0:
		n.tell(m, 0)
		if m.what == dial {
			n.orphan(c)
		}
		return
	}
	n.tell(m, n.world.Now())
	if c.far.dead || c.torn && m.what == reset { // nobody is there to wait for what is lost, or it never comes
		n.hand(m)
		return
	}
	if m.number != c.arrived {
		if c.ahead == nil {
			c.ahead = map[uint64]*message{}
		}
		c.ahead[m.number] = m
		return
	}
	for m != nil {
		delete(c.ahead, m.number)
		c.arrived++
		n.hand(m)
		m = c.ahead[c.arrived]
	}
}

// hand gives a message, whose turn it is, to the far end.
func (n *Network) hand(m *message) {
	if m.what == dial {
		n.accept(m.from)
		return
	}
	m.from.far.take(m)
}

func (n *Network) tell(m *message, arrived time.Duration) {
	n.world.Publish(event.Message{
		From: m.from.local, To: m.from.peer, Port: m.from.port, What: m.what, Size: len(m.data), Sent: m.sent, Arrived: arrived,
	})
}

// accept hands a new connection to who listens at its port.
func (n *Network) accept(near *Conn) {
	far := near.far
	n.disown(near)
	if far.dead { // broken while the dial was on its way
		return
	}
	accept := n.ports[endpoint{far.local, far.port}]
	if accept == nil {
		far.breakWith(Refused)
		return
	}
	near.accepted = true
	accept(far)
}

// take is a message that arrived at this end.
func (c *Conn) take(m *message) {
	switch {
	case c.dead:
		if m.what != reset && !c.far.dead { // nobody is here any more
			c.send(&message{what: reset})
		}
		return
	case !c.handled && m.what != reset:
		c.early = append(c.early, m)
		return
	}
	switch m.what {
	case data:
		if c.onData != nil {
			c.onData(m.data)
		}
	case end:
		c.heardEnd = true
		c.finish(false)
		c.settle()
	case reset:
		c.why = m.why
		c.finish(true)
		c.drop()
	}
}

func (c *Conn) finish(broken bool) {
	if f := c.onEnd; f != nil {
		c.onEnd = nil
		f(broken)
	}
}
