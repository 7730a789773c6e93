// SPDX-License-Identifier: Apache-2.0

package network

import (
	"slices"
	"time"

	"fairlead.io/fairlead/sim/event"
)

// backoffMost bounds how much longer than a cut its connections stay silent: retransmissions come ever more seldom.
const backoffMost = 1500 * time.Millisecond

// Cut lets nothing pass from one machine to another until the function that it returns is called. A link may be cut
// several times over.
func (n *Network) Cut(from, to string) (heal func()) {
	from, to = n.Machine(from), n.Machine(to)
	s := n.link(from, to)
	if s.cuts++; s.cuts == 1 {
		s.since = n.world.Now()
		n.world.Publish(event.Link{From: from, To: to})
	}
	return once(func() {
		if s.cuts--; s.cuts == 0 {
			n.world.Publish(event.Link{From: from, To: to, Up: true})
			n.release(s)
		}
	})
}

// Slow adds to the latency of a link, extra always and jitter as the mean of something that differs from message to
// message, until the function that it returns is called.
func (n *Network) Slow(from, to string, extra, jitter time.Duration) (heal func()) {
	s := n.link(from, to)
	s.extra += extra
	s.jitter += jitter
	return once(func() { s.extra -= extra; s.jitter -= jitter })
}

// Lose has a share of the messages of a link be sent twice or more often, until the function that it returns is
// called. Shares add up, to 90 % at most.
func (n *Network) Lose(from, to string, share float64) (heal func()) {
	s := n.link(from, to)
	s.losses = append(s.losses, &share)
	s.lose()
	return once(func() {
		s.losses = slices.DeleteFunc(s.losses, func(o *float64) bool { return o == &share })
		s.lose()
	})
}

func (s *state) lose() {
	s.loss = 0
	for _, share := range s.losses {
		s.loss = min(s.loss+*share, 0.9)
	}
}

// Break resets all connections between two machines, as a firewall does that forgot its state.
func (n *Network) Break(a, b string) {
	for _, c := range n.conns {
		if c.local == a && c.peer == b || c.local == b && c.peer == a {
			c.lose()
			c.far.lose()
		}
	}
}

// Power takes a machine's power, or gives it back. What it had connections to hears nothing of either; its own ends are
// gone.
func (n *Network) Power(machine string, on bool) {
	if on {
		n.off[machine] = max(n.off[machine]-1, 0)
		return
	}
	if n.off[machine]++; n.off[machine] > 1 {
		return
	}
	for _, c := range n.conns {
		if c.local == machine {
			c.drop()
		}
		if c.far.local == machine {
			c.far.drop()
			n.orphan(c)
		}
	}
}

// orphan notes a dialling end of a connection to a machine which has lost power. Once it has nothing more to say itself it
// would wait for ever. Requests of HTTP share a connection, which is kept alive by pings: it is broken by the next dial
// that reaches the machine at the same port, or given up.
func (n *Network) orphan(c *Conn) {
	if c.dead {
		return
	}
	n.orphans = append(n.orphans, c)
	n.world.After(GiveUp, func() {
		if i := slices.Index(n.orphans, c); i >= 0 {
			n.orphans = slices.Delete(n.orphans, i, i+1)
			if c.ended {
				c.lose()
			}
		}
	})
}

// disown resets the orphans that share a connection with a new one.
func (n *Network) disown(by *Conn) {
	n.orphans = slices.DeleteFunc(n.orphans, func(c *Conn) bool {
		shared := c.ended && c.local == by.local && c.peer == by.peer && c.port == by.port
		if shared && !c.dead {
			c.far.drop()
			c.far.send(&message{what: reset})
		}
		return shared || c.dead
	})
}

// lose breaks this end, without telling the other.
func (c *Conn) lose() {
	if !c.dead {
		c.finish(true)
		c.drop()
	}
}

// hold keeps a message until the link heals, or its connection is given up.
func (n *Network) hold(s *state, m *message) {
	m.held = n.world.Now()
	s.held = append(s.held, m)
	n.world.After(GiveUp, func() {
		for _, h := range s.held {
			if h == m {
				m.from.lose()
				m.from.far.lose()
				return
			}
		}
	})
}

// release sends what a cut kept back, after a while that differs from connection to connection. What an end had said that
// is gone by then nobody sends again, but that it is gone is told.
func (n *Network) release(s *state) {
	held := s.held
	s.held = nil
	most := min(n.world.Now()-s.since, backoffMost)
	wait := map[*Conn]time.Duration{}
	for _, m := range held {
		if m.from.dead && m.what != reset {
			m.from.torn = true
			continue
		}
		d, ok := wait[m.from]
		if !ok {
			d = time.Duration(n.random.Int64N(int64(most) + 1))
			wait[m.from] = d
		}
		n.convey(m, s, d+n.latency(m.from.local, m.from.peer, s))
	}
}

func once(f func()) func() {
	done := false
	return func() {
		if !done {
			done = true
			f()
		}
	}
}
