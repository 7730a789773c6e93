// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/internal/testkit"
)

// connection is one between the client and the pod.
type connection struct {
	t            *testing.T
	name         string
	client, here net.Conn
}

// connect begins a connection to port 82 of an address, which the node translates to the pod's 8082.
func (l *lab) connect(to netip.Addr) *connection {
	l.t.Helper()
	translated := of(to.Is6(), pod4, pod6)
	family, at := "ip", translated.String()
	if to.Is6() {
		family, at = "ip6", "["+at+"]"
	}
	l.node.Run("nft", "add rule inet proxy prerouting "+family+" daddr "+to.String()+" tcp dport 82 dnat "+family+" to "+at+":8082")
	c := &connection{t: l.t, name: to.String()}
	listener := l.pod.Listen("tcp", netip.AddrPortFrom(translated, 8082).String())
	defer listener.Close()
	var err error
	if c.client, err = l.client.Dial("tcp", netip.AddrPortFrom(to, 82).String(), testkit.Patience); err == nil {
		l.t.Cleanup(func() { c.client.Close() })
		c.here, err = listener.Accept()
	}
	if err != nil {
		l.t.Fatalf("%s: %v", to, err)
	}
	l.t.Cleanup(func() { c.here.Close() })
	return c
}

// say has the pod say a word to a client that says nothing, and fails unless it arrives.
func (c *connection) say(word string) {
	c.t.Helper()
	heard := make([]byte, len(word))
	_ = c.client.SetDeadline(time.Now().Add(testkit.Patience))
	_, err := io.WriteString(c.here, word)
	if err == nil {
		_, err = io.ReadFull(c.client, heard)
	}
	if err != nil || string(heard) != word {
		c.t.Errorf("%s: the client heard %q, %v; the pod said %q", c.name, heard, err, word)
	}
}

// connectionsMarked counts the connections of the node that bear any of some bits.
func (l *lab) connectionsMarked(bits uint32) (n int) {
	l.t.Helper()
	if err := l.node.Do(func() error {
		for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
			flows, err := netlink.ConntrackTableList(netlink.ConntrackTable, family)
			if err != nil {
				return err
			}
			for _, f := range flows {
				if f.Mark&bits != 0 {
					n++
				}
			}
		}
		return nil
	}); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// Connections outlive a change of FWMARK, also if it is the pod that speaks next, and none keeps the former mark.
func TestConnectionsOutliveAChangeOfTheMark(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, s *steer.Steer, w steer.Wanted) {
		open := []*connection{l.connect(vip4), l.connect(vip6)}
		before := uint32(0x2000)
		for _, mark := range []uint32{0x40, 0xc0, 0x80, 0x2000} {
			if n := l.connectionsMarked(before); n != len(open) {
				t.Fatalf("%d connections have mark %#x", n, before)
			}
			w.Config.FwMark = mark
			l.apply(s, w)
			if n := l.connectionsMarked(before &^ mark); n != 0 {
				t.Errorf("%d connections keep mark %#x", n, before)
			}
			for _, c := range open {
				c.say("still here")
			}
			before = mark
		}
	})
}

// The mark may also have been changed in the options of an agent that was started anew.
func TestAnAgentThatStartsTakesConnectionsOver(t *testing.T) {
	inBothModes(t, func(t *testing.T, l *lab, s *steer.Steer, w steer.Wanted) {
		c := l.connect(vip4)
		s.Close()
		o := l.options()
		o.MarkOut = 0x40
		l.apply(l.steerWith(o), w)
		c.say("of the next agent")
		if n := l.connectionsMarked(0x2000); n != 0 {
			t.Errorf("%d connections keep the mark of an agent that is gone", n)
		}
	})
}
