// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/demo/internal/load"
	"fairlead.io/fairlead/internal/testkit"
)

// A pod that starts or ends on a node must not take packets from others there.
func TestBridgeKeepsItsLinkAddress(t *testing.T) {
	requireSandbox(t)
	address := func() string {
		text, err := here.Run("", "ip", "-brief", "link", "show", "kept")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(text)[2]
	}
	if err := here.IP(bridge("kept", podGateway(1))...); err != nil {
		t.Fatal(err)
	}
	before := address()
	if err := here.IP("link add least type veth peer name other", "link set least address 02:00:00:00:00:00", "link set least master kept up"); err != nil {
		t.Fatal(err)
	}
	with := address()
	if err := here.IP("link delete least"); err != nil {
		t.Fatal(err)
	}
	if after := address(); with != before || after != before {
		t.Errorf("link address %s, with another port %s, without it %s", before, with, after)
	}
	if err := here.IP("link delete kept"); err != nil {
		t.Error(err)
	}
}

// TestOnePacketThatIsLostIsNoticed has the kernel drop the first packet of its kind. All requests are answered correctly all the same,
// for TCP tries again.
func TestOnePacketThatIsLostIsNoticed(t *testing.T) {
	requireSandbox(t)
	for _, c := range []struct {
		name, drop     string // of packets to and from a port
		clients, lines int    // who notice: requests, and lines of the pod's log
	}{
		{"none", "tcp dport %d meta length > 8000", 0, 0},
		{"first", "tcp dport %d tcp flags == syn", 1, 0},
		{"first-answer", "tcp sport %d tcp flags == syn|ack", 1, 0},
		{"request", "tcp dport %d meta length > 80", 1, 0},
		{"answer", "tcp sport %d meta length > 80", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			address := l.Addr().(*net.TCPAddr).AddrPort()
			file := filepath.Join(t.TempDir(), "pod.log")
			log, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close()
			go func() { _ = answerAll(l, identityOf("web", "web-1", "n1"), log) }() // until it is closed
			rules := fmt.Sprintf(`table ip lost {
	chain in { type filter hook input priority 0; `+c.drop+` limit rate 1/day burst 1 packets drop; }
}`, address.Port())
			if _, err := here.Run(rules, "nft", "-f", "-"); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if _, err := here.Run("", "nft", "delete", "table", "ip", "lost"); err != nil {
					t.Error(err)
				}
			}()
			g := load.Generator{
				Sources: []netip.Addr{netip.MustParseAddr("127.0.0.51")}, Every: 10 * time.Millisecond, Timeout: patientTimeout, ByPackets: true,
				Targets: []load.Target{{Name: "web", Address: address, Check: func(body string) (string, error) { return checkAnswer("web", body) }}},
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			out, err := g.Run(ctx)
			if err != nil {
				t.Fatal(err)
			}
			lost := 0
			for _, r := range out.Requests {
				if errors.Is(r.Err, load.ErrLost) {
					lost++
				} else if r.Failed() {
					t.Errorf("request %+v", r)
				}
			}
			if lost != c.clients {
				t.Errorf("clients noticed %d of one lost packet of %d requests, want %d", lost, len(out.Requests), c.clients)
			}
			if c.lines == 0 {
				return // a pod that sees nothing says nothing, now or later
			}
			testkit.Eventually(t, "line of the pod", func() error {
				if lines := linesOf(t, file, sentAgain); len(lines) != c.lines {
					return fmt.Errorf("%d lines, want %d: %q", len(lines), c.lines, lines)
				}
				return nil
			})
		})
	}
}
