// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/internal/freeport"
	"fairlead.io/fairlead/internal/testkit"
)

// Strangers who connect again and again fill no log.
func TestConnectionsOfNobodyAreSaidNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := &testkit.Log{}
		log := slog.New(handler{logger: newLogger(slog.New(slog.NewTextHandler(said, nil)))})
		for range 3 {
			for range 100 {
				log.Info(nobodysConnection)
			}
			time.Sleep(nobodyAgain)
		}
		if n := said.Count(nobodysConnection); n != 3 {
			t.Errorf("said %d times in %v:\n%s", n, 3*nobodyAgain, said)
		}
	})
}

// Peers whose sessions come and go, or end each time for another reason, fill no log.
func TestWhatPeersCauseIsSaidNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := &testkit.Log{}
		l := newLogger(slog.New(slog.NewTextHandler(said, nil)))
		l.up = func(attributes) {}
		log := slog.New(handler{logger: l})
		const seconds = 100
		for i := range 100 * seconds {
			peer := log.With("Topic", "Peer", "Key", "192.0.2.1")
			peer.Info("Peer Up")
			peer.Info("received notification", "Code", i%7, "Subcode", i%5)
			peer.Warn("Session will be reset due to malformed BGP Header")
			time.Sleep(time.Second / 100)
		}
		if n, most := said.Count("level="), talkAtOnce+seconds; n < seconds || n > most {
			t.Errorf("%d lines in %d seconds, at most %d", n, seconds, most)
		}
	})
}

// Who is no peer is disconnected before it said anything, and GoBGP says so in the words that we know.
func TestConnectionsOfNobodyEndAtOnce(t *testing.T) {
	address := netip.MustParseAddr("127.0.0.1")
	port, err := freeport.Draw(address)
	if err != nil {
		t.Fatal(err)
	}
	said := &testkit.Log{}
	s, err := New(Config{ASN: 65000, RouterID: address, ListenPort: port, ListenAddrs: []netip.Addr{address}, Logger: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Detach(t.Context()) }()
	for range 50 {
		c, err := net.Dial("tcp", netip.AddrPortFrom(address, port).String())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
			t.Fatal("a stranger was told something")
		} else if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Fatal("a stranger was left alone")
		}
		_ = c.Close()
	}
	if n := said.Count(nobodysConnection); n == 0 || n > 20 {
		t.Errorf("said %d times:\n%s", n, said)
	}
}
