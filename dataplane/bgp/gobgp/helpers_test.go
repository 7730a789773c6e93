// SPDX-License-Identifier: Apache-2.0

// As binaries with speakers must be built, or passwords do not work: Multipath TCP, by which Go listens, cannot sign.
//
//go:debug multipathtcp=0

package gobgp

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

// TestMain lets more tests run at once than there are processors: they wait for switches most of the time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func path(p, nextHop string) bgp.Path { return bgp.Path{Prefix: prefix(p), NextHop: addr(nextHop)} }

// GoBGP writes variables of its package whenever a server starts, always the same values, and other servers read them.
// Under the race detector tests therefore run one by one, and those that start a speaker while another runs not at all.

func parallel(t *testing.T) {
	if !testkit.RaceDetector {
		t.Parallel()
	}
}

func noRaceDetector(t *testing.T) {
	if testkit.RaceDetector {
		t.Skip("starts a speaker beside a running one, which is a (harmless) data race within GoBGP")
	}
}

// self is where the n-th speaker of a test lives: an address of its own, and a port.
type self struct {
	n    int
	addr netip.Addr
	port uint16
	late time.Duration // how long GoBGP waits, once it has written something, before it tells so
}

func newSelf(t testing.TB, n int) self {
	a := addr(fmt.Sprintf("127.0.0.%d", 10+n))
	return self{n: n, addr: a, port: birdtest.FreePort(t, a)}
}

// neighbor is the speaker as BIRD knows it.
func (s self) neighbor() birdtest.Neighbor {
	return birdtest.Neighbor{Name: s.name(), Address: s.addr, Port: s.port}
}

func (s self) name() string { return fmt.Sprintf("s%d", s.n) }

// peer is BIRD as the speaker knows it.
func (s self) peer(b *birdtest.Bird) bgp.Peer {
	return bgp.Peer{
		Name: "switch", Address: b.Address(), Port: b.Port(), RemoteASN: b.ASN(), LocalAddress: s.addr,
		Families: []bgp.Family{bgp.IPv4, bgp.IPv6},
	}
}

// start starts the speaker. It is drained when the test ends.
func (s self) start(t testing.TB) *Speaker {
	t.Helper()
	c := Config{
		ASN: 65000, RouterID: addr(fmt.Sprintf("192.0.2.%d", s.n)), ListenPort: s.port,
		ListenAddrs: []netip.Addr{s.addr}, Logger: testLogger(t, s.name()),
	}
	var sp *Speaker
	testkit.Until(t, "the port", func() (ok bool) { // processes that other tests start hold all sockets for a moment, closed ones too
		var err error
		if sp, err = New(c); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() { sp.Drain(context.Background()) })
	if tell := sp.logger.written; s.late > 0 {
		sp.logger.written = func(about attributes) {
			time.Sleep(s.late)
			tell(about)
		}
	}
	return sp
}

// apply applies and waits until all is written.
func apply(t testing.TB, s *Speaker, d bgp.Desired) {
	t.Helper()
	if err := s.Apply(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "updates to be written", func() bool {
		ok, err := s.Written(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return ok
	})
}

// testLogger collects what a speaker logs, and shows it if the test fails.
func testLogger(t testing.TB, name string) *slog.Logger {
	var buf testkit.Log
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, buf.String())
		}
	})
	return slog.New(slog.NewTextHandler(&buf, nil))
}

// listOf gives paths as a list, in order.
func listOf(p bgp.Paths) []bgp.Path { return slices.Collect(p.All()) }
