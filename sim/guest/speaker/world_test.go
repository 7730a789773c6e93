// SPDX-License-Identifier: Apache-2.0

package speaker_test

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/guest/bubble"
	"fairlead.io/fairlead/sim/guest/speaker"
)

const memberASN = 64512

var switchAddress = netip.MustParseAddr("192.0.2.254")

// lab is a world with a switch that knows the members m1 and m2.
type lab struct {
	*bubble.World
	t      *testing.T
	sw     *fabric.Switch
	ups    int
	flaps  int // times that a prefix was forwarded nowhere
	served map[netip.Prefix]bool
}

func inLab(t *testing.T, o fabric.Options, test func(*lab)) {
	bubble.Test(t, 1, func(t *testing.T, w *bubble.World) {
		l := &lab{World: w, t: t, served: map[netip.Prefix]bool{}}
		l.World.World.Hear(func(e event.Stamped) {
			switch e := e.Event.(type) {
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
		l.Do(func() {
			l.Network.Alias(switchAddress.String(), o.Name)
			l.sw = fabric.New(l.World.World, l.Network, o)
		})
		test(l)
	})
}

// start makes a member's speaker, and how to kill its process.
func (l *lab) start(member string) (s *speaker.Speaker, kill func()) {
	p := l.Process(member)
	return speaker.New(speaker.Config{
		ASN: memberASN, RouterID: netip.MustParseAddr("192.0.2." + member[1:]), Logger: slog.New(slog.DiscardHandler), Dial: p.Dial,
	}), p.Kill
}

func peer() bgp.Peer {
	return bgp.Peer{Name: "switch", Address: switchAddress, RemoteASN: 65000, HoldTime: 3 * time.Second, Families: []bgp.Family{bgp.IPv4, bgp.IPv6}}
}

// desired is what the last bytes of prefixes and next hops say: "10 11" is 203.0.113.10 by way of 192.0.2.11.
func desired(pairs ...[2]byte) bgp.Desired {
	d := bgp.Desired{Peers: []bgp.Peer{peer()}}
	for _, p := range pairs {
		d.Paths = bgp.NewPaths(append(slices.Collect(d.Paths.All()), bgp.Path{Prefix: prefixOf(p[0]), NextHop: hopOf(p[1])})...)
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

// hops are the last bytes of the next hops to a prefix.
func (l *lab) hops(prefix netip.Prefix) (out []byte) {
	l.Do(func() {
		for hash := range uint64(64) {
			if hop, ok := l.sw.Forward(prefix.Addr(), hash); ok {
				b := hop.AsSlice()
				out = append(out, b[len(b)-1])
			}
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

func (l *lab) established(member string) (is bool) {
	l.Do(func() { is = l.sw.Established(member) })
	return is
}

func (l *lab) count(of *int) (n int) {
	l.Do(func() { n = *of })
	return n
}
