// SPDX-License-Identifier: Apache-2.0

package speaker_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/guest/speaker"
	"fairlead.io/fairlead/sim/network"
)

const memberASN = 64512

var switchAddress = netip.MustParseAddr("192.0.2.254")

// lab is a switch in a world whose time is the bubble's. The lock is held by whoever touches the world.
type lab struct {
	t       *testing.T
	mu      sync.Mutex
	begin   time.Time
	world   *engine.World
	network *network.Network
	sw      *fabric.Switch
	trouble []string
	ups     int
	flaps   int // times that a prefix was forwarded nowhere
	served  map[netip.Prefix]bool
	stop    chan struct{}
	stopped chan struct{}
}

// inLab runs a test with a switch that knows the members m1 and m2.
func inLab(t *testing.T, o fabric.Options, test func(*lab)) {
	synctest.Test(t, func(t *testing.T) {
		w := engine.New(1)
		l := &lab{
			t: t, begin: time.Now(), world: w, network: network.New(w, network.Options{}), served: map[netip.Prefix]bool{},
			stop: make(chan struct{}), stopped: make(chan struct{}),
		}
		w.Hear(func(e event.Stamped) {
			switch e := e.Event.(type) {
			case event.Refused:
				l.trouble = append(l.trouble, fmt.Sprintf("%s refused %s of %s: %s", e.Model, e.What, e.By, e.Why))
			case event.Session:
				if e.Up {
					l.ups++
				}
			case event.Forwarding:
				if len(e.NextHops) == 0 && l.served[e.Prefix] {
					l.flaps++
				}
				l.served[e.Prefix] = len(e.NextHops) > 0
			}
		})
		for _, m := range []string{"m1", "m2"} {
			o.Neighbours = append(o.Neighbours, fabric.Neighbour{Member: m, ASN: memberASN})
		}
		l.network.Alias(switchAddress.String(), o.Name)
		l.sw = fabric.New(w, l.network, o)
		go l.drive()
		test(l)
		close(l.stop)
		<-l.stopped
		for _, what := range l.trouble {
			t.Error(what)
		}
	})
}

// drive keeps the world's time at the bubble's.
func (l *lab) drive() {
	defer close(l.stopped)
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(time.Millisecond):
		}
		l.do(func() {
			if err := l.world.Run(time.Since(l.begin)); err != nil {
				l.trouble = append(l.trouble, err.Error())
			}
		})
	}
}

func (l *lab) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// start makes a member's speaker, and how to kill its process.
func (l *lab) start(member string) (s *speaker.Speaker, kill func()) {
	var mu sync.Mutex
	var conns []*conn
	dead := false
	s = speaker.New(speaker.Config{
		ASN: memberASN, RouterID: netip.MustParseAddr("192.0.2." + member[1:]), Logger: slog.New(slog.DiscardHandler),
		Dial: func(_ context.Context, host, port string, hello []byte) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if dead {
				return nil, io.ErrClosedPipe
			}
			c := l.dial(member, host, port, hello)
			conns = append(conns, c)
			return c, nil
		},
	})
	return s, func() {
		mu.Lock()
		defer mu.Unlock()
		dead = true
		for _, c := range conns {
			l.do(c.far.Reset)
			c.finish()
		}
	}
}

// conn is a network connection as a net.Conn.
type conn struct {
	net.Conn // deadlines and addresses are not used
	l        *lab
	far      *network.Conn
	in       chan []byte
	rest     []byte
	over     chan struct{}
	once     sync.Once
}

func (l *lab) dial(from, host, port string, hello []byte) *conn {
	c := &conn{l: l, in: make(chan []byte, 1<<12), over: make(chan struct{})}
	l.do(func() {
		c.far = l.network.Dial(from, host, port, hello)
		c.far.Handle(func(b []byte) { c.in <- b }, func(bool) { c.finish() })
	})
	return c
}

func (c *conn) finish() { c.once.Do(func() { close(c.over) }) }

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

func (c *conn) Write(b []byte) (int, error) {
	c.l.do(func() { c.far.Send(slices.Clone(b)) })
	return len(b), nil
}

func (c *conn) Close() error {
	c.l.do(c.far.End)
	c.finish()
	return nil
}

func peer() bgp.Peer {
	return bgp.Peer{Name: "switch", Address: switchAddress, RemoteASN: 65000, HoldTime: 3 * time.Second, Families: []bgp.Family{bgp.IPv4, bgp.IPv6}}
}

// desired is what the last bytes of prefixes and next hops say: "10 11" is 203.0.113.10 by way of 192.0.2.11.
func desired(pairs ...[2]byte) bgp.Desired {
	d := bgp.Desired{Peers: []bgp.Peer{peer()}}
	for _, p := range pairs {
		d.Paths = append(d.Paths, bgp.Path{Prefix: prefixOf(p[0]), NextHop: hopOf(p[1])})
	}
	return d
}

func prefixOf(n byte) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, n}), 32)
}

func hopOf(n byte) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, n}) }

// apply applies, and waits until all is written and has arrived.
func (l *lab) apply(s *speaker.Speaker, d bgp.Desired) {
	l.t.Helper()
	if err := s.Apply(l.t.Context(), d); err != nil {
		l.t.Fatal(err)
	}
	l.settle(s)
}

func (l *lab) settle(s *speaker.Speaker) {
	l.t.Helper()
	for range 10000 {
		if ok, err := s.Written(l.t.Context()); err != nil {
			l.t.Fatal(err)
		} else if ok {
			time.Sleep(50 * time.Millisecond)
			return
		}
		time.Sleep(time.Millisecond)
	}
	l.t.Fatal("never written")
}

func (l *lab) until(what string, f func() bool) {
	l.t.Helper()
	for range 20000 {
		ok := false
		l.do(func() { ok = f() })
		if ok {
			return
		}
		time.Sleep(time.Millisecond)
	}
	l.t.Fatal("not: " + what)
}

// hops are the last bytes of the next hops to a prefix.
func (l *lab) hops(prefix netip.Prefix) (out []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for hash := range uint64(64) {
		if hop, ok := l.sw.Forward(prefix.Addr(), hash); ok {
			b := hop.AsSlice()
			out = append(out, b[len(b)-1])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (l *lab) established(member string) (is bool) {
	l.do(func() { is = l.sw.Established(member) })
	return is
}

func (l *lab) count(of *int) (n int) {
	l.do(func() { n = *of })
	return n
}
