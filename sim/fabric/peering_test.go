// SPDX-License-Identifier: Apache-2.0

package fabric_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/fabric"
	"fairlead.io/fairlead/sim/fabric/message"
	"fairlead.io/fairlead/sim/network"
)

// peering is one switch, and speakers that say what the test tells them.
type peering struct {
	world    *engine.World
	network  *network.Network
	sw       *fabric.Switch
	speakers map[string]*speaker
	refused  []event.Refused
	sessions []event.Session
	changes  int // of forwarding
}

const switchASN, memberASN = 65000, 64512

var members = []string{"a", "b", "c"}

func newPeering(o fabric.Options) *peering {
	w := engine.New(1)
	n := network.New(w, network.Options{Least: time.Nanosecond, Spread: time.Nanosecond})
	l := &peering{world: w, network: n, speakers: map[string]*speaker{}}
	w.Hear(func(e event.Stamped) {
		switch e := e.Event.(type) {
		case event.Refused:
			l.refused = append(l.refused, e)
		case event.Session:
			l.sessions = append(l.sessions, e)
		case event.Forwarding:
			l.changes++
		}
	})
	o.Name, o.ASN = "switch", switchASN
	for _, m := range members {
		o.Neighbours = append(o.Neighbours, fabric.Neighbour{Member: m, ASN: memberASN})
	}
	l.sw = fabric.New(w, n, o)
	return l
}

// speaker is one end that a test plays.
type speaker struct {
	l       *peering
	name    string
	open    message.Open
	conn    *network.Conn
	decoder message.Decoder
	heard   []message.Message
	ended   bool
	alive   *engine.Timer
}

// greeting is what speakers open with; d changes it.
func greeting(name string, d func(*message.Open)) message.Open {
	o := message.Open{
		ASN: memberASN, RouterID: netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + slices.Index(members, name))}),
		Hold: 3 * time.Second, Families: []message.Family{4, 6}, AddPath: true, SendMax: 64,
		Restart: &message.Restart{Time: time.Second, Forwarding: true, Stale: 600 * time.Second},
	}
	if d != nil {
		d(&o)
	}
	return o
}

// connect opens a session and keeps it alive.
func (l *peering) connect(name string, d func(*message.Open)) *speaker {
	s := &speaker{l: l, name: name, open: greeting(name, d)}
	l.speakers[name] = s
	s.conn = l.network.Dial(name, "switch", fabric.Port, nil)
	s.conn.Handle(func(b []byte) {
		s.decoder.Add(b)
		for {
			m, err := s.decoder.Next()
			if err != nil {
				panic(err)
			}
			if m == nil {
				return
			}
			s.heard = append(s.heard, m)
		}
	}, func(bool) { s.ended = true; s.alive.Stop() })
	s.say(s.open, message.Keepalive{})
	s.live()
	l.pass(time.Millisecond)
	return s
}

func (s *speaker) live() {
	s.alive = s.l.world.After(s.open.Hold/3, func() {
		s.say(message.Keepalive{})
		s.live()
	})
}

func (s *speaker) say(all ...message.Message) {
	for _, m := range all {
		s.conn.Send(message.Encode(m))
	}
}

// kill is the end of the process: TCP closes.
func (s *speaker) kill() {
	s.alive.Stop()
	s.conn.Reset()
	s.l.pass(time.Millisecond)
}

// cut is silence.
func (s *speaker) cut() { s.alive.Stop() }

func (l *peering) pass(d time.Duration) {
	if err := l.world.Run(l.world.Now() + d); err != nil {
		panic(err)
	}
}

func (l *peering) hops(prefix netip.Prefix) (out []string) {
	seen := map[netip.Addr]bool{}
	for hash := range uint64(64) {
		if hop, ok := l.sw.Forward(prefix.Addr(), hash); ok {
			seen[hop] = true
		}
	}
	for hop := range seen {
		out = append(out, hop.String())
	}
	slices.Sort(out)
	return out
}

func nlri(prefix netip.Prefix, id uint32) []message.NLRI {
	return []message.NLRI{{Prefix: prefix, PathID: id}}
}

func (s *speaker) announce(prefix netip.Prefix, id uint32, hop netip.Addr, med uint32) {
	s.say(message.Update{Announced: nlri(prefix, id), Attributes: message.Attributes{
		NextHop: hop, Origin: 2, MED: med, ASPath: []uint32{memberASN},
	}})
}

func (s *speaker) withdraw(prefix netip.Prefix, id uint32) {
	s.say(message.Update{Withdrawn: nlri(prefix, id)})
}

func (l *peering) mustBeClean(t testing.TB) {
	t.Helper()
	for _, r := range l.refused {
		t.Errorf("refused %s of %s: %s", r.What, r.By, r.Why)
	}
}
