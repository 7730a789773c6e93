// SPDX-License-Identifier: Apache-2.0

package freeport_test

import (
	"net"
	"net/netip"
	"testing"

	"fairlead.io/fairlead/internal/freeport"
)

func TestDrawGivesAPortThatCanBeListenedAtAndNoConnectionTakes(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	for range 20 {
		port, err := freeport.Draw(loopback)
		if err != nil {
			t.Fatal(err)
		}
		if port >= 32768 {
			t.Fatalf("port %d may be taken by an outgoing connection", port)
		}
		l, err := net.Listen("tcp", netip.AddrPortFrom(loopback, port).String())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}

// Nobody listens at any of them, as is the case until those do whom they were drawn for.
func TestDrawGivesNoPortTwice(t *testing.T) {
	drawn := map[uint16]bool{}
	for range 2000 {
		port, err := freeport.Draw(netip.MustParseAddr("127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		if drawn[port] {
			t.Fatalf("drew %d twice", port)
		}
		drawn[port] = true
	}
}

func TestListenerIsAtAPortThatNoConnectionTakes(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	for range 20 {
		l, err := freeport.Listen(loopback)
		if err != nil {
			t.Fatal(err)
		}
		at := l.Addr().(*net.TCPAddr).AddrPort()
		if at.Addr() != loopback || at.Port() >= 32768 {
			t.Fatalf("listens at %s", at)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = net.Listen("tcp", at.String()); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}

func TestDrawFailsOnAnAddressThatIsNotOurs(t *testing.T) {
	if port, err := freeport.Draw(netip.MustParseAddr("192.0.2.1")); err == nil {
		t.Errorf("drew port %d", port)
	}
}
