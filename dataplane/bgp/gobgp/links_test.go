// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

// link is the only one that a speaker has, if it has one.
func link(t *testing.T, s *Speaker) (bgp.Link, bool) {
	t.Helper()
	links, err := s.Links(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(links) > 1 {
		t.Fatalf("links %+v", links)
	}
	if len(links) == 0 {
		return bgp.Link{}, false
	}
	return links[0], true
}

// A peer is waited for until it has everything; also one that was lost, or that is not there, since an earlier life of
// the speaker may have told it something; and no more once the speaker took its leave of it.
func TestLinksTellWhoMayHoldPaths(t *testing.T) {
	parallel(t)
	sw := startSwitch(t, 1)
	s := dialler(t, 0)
	peer := switchPeer(sw)
	apply(t, s, bgp.Desired{Paths: bgp.NewPaths(path("203.0.113.1/32", "192.0.2.1")), Peers: []bgp.Peer{peer}})
	if l, there := link(t, s); !there || l.Peer != peer.Address {
		t.Fatalf("%+v: a peer that was never reached may hold something", l)
	}
	var first bgp.Link
	testkit.Until(t, "everything to arrive", func() bool {
		first, _ = link(t, s)
		return first.Session != 0 && first.Written && first.Arrived == first.Sent && first.Peer == peer.Address
	})

	apply(t, s, bgp.Desired{Peers: []bgp.Peer{peer}})
	testkit.Until(t, "the withdrawal to arrive", func() bool {
		l, _ := link(t, s)
		return l.Session == first.Session && l.Written && l.Arrived == l.Sent
	})
	if l, _ := link(t, s); runtime.GOOS == "linux" && l.Arrived <= first.Arrived {
		t.Errorf("%d bytes after %d: the withdrawal was not counted", l.Arrived, first.Arrived)
	}

	if err := shutdownSocket(s.session(peer.Address).tuple); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "another session", func() bool {
		l, there := link(t, s)
		if !there || l.Session == first.Session && l.Session != 0 && !l.Written {
			t.Fatalf("link %+v, there %t: the switch keeps what it has", l, there)
		}
		return l.Session > first.Session && l.Written
	})
	apply(t, s, bgp.Desired{})
	testkit.Until(t, "the leave", func() bool { _, there := link(t, s); return !there })
}

// Who removes a peer with a password has it take leave, too, and nobody waits for what it may keep; also where the session opened and the
// speaker has not heard of it yet.
func TestSignedPeersThatAreRemovedKeepNothing(t *testing.T) {
	parallel(t)
	for _, heard := range []bool{true, false} {
		t.Run(fmt.Sprintf("heard-%t", heard), func(t *testing.T) { removeSigned(t, heard) })
	}
}

func removeSigned(t *testing.T, heard bool) {
	parallel(t)
	self := newSelf(t, 1)
	signed := self.neighbor()
	signed.Password = "secret"
	bird := birdtest.Start(t, birdtest.Config{Neighbors: []birdtest.Neighbor{signed}})
	s := self.start(t)
	peer := self.peer(bird)
	peer.Password = "secret"
	apply(t, s, bgp.Desired{Paths: bgp.NewPaths(path(vip, hop1)), Peers: []bgp.Peer{peer}})
	bird.WaitNextHops(prefix(vip), addr(hop1))
	if !heard {
		testkit.Until(t, "the event", func() bool { return s.session(peer.Address) != nil })
		s.sessionsMu.Lock()
		delete(s.sessions, peer.Address)
		s.sessionsMu.Unlock()
	}
	apply(t, s, bgp.Desired{Paths: bgp.NewPaths(path(vip, hop1))})
	testkit.Until(t, "the leave", func() bool { _, there := link(t, s); return !there })
	bird.WaitNextHops(prefix(vip))
}

// What the other end has no room for is written, and has not arrived.
func TestStreamTellsWhatArrived(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	near, far := connected(t)
	look := func() (written, confirmed uint64) {
		t.Helper()
		err := withSocket(tupleOf(near), func(fd int) (err error) {
			written, confirmed, err = stream(fd)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return written, confirmed
	}
	before, _ := look()
	n := 0
	for more := 1; more > 0 || n == 0; n += more { // a busy machine may write nothing in time once, while there is room
		if err := near.SetWriteDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		var err error
		if more, err = near.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("wrote %d bytes more: %v", more, err)
		}
	}
	if written, confirmed := look(); written != before+uint64(n) || confirmed >= written {
		t.Errorf("%d were written and %d confirmed, of %d after %d", written, confirmed, n, before)
	}
	go func() { _, _ = io.Copy(io.Discard, far) }()
	testkit.Until(t, "all to arrive", func() bool {
		written, confirmed := look()
		return written == before+uint64(n) && confirmed == written
	})
	near.Close()
	if err := withSocket(tupleOf(near), func(int) error { return nil }); !errors.Is(err, errNoSocket) {
		t.Errorf("looked at a connection that is gone: %v", err)
	}
}

func tupleOf(c net.Conn) tuple {
	return tuple{
		localPort: c.LocalAddr().(*net.TCPAddr).AddrPort().Port(), remote: c.RemoteAddr().(*net.TCPAddr).AddrPort(),
	}
}

func connected(t *testing.T) (near, far net.Conn) {
	t.Helper()
	l, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if near, err = net.Dial("tcp4", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}
