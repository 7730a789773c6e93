// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"bytes"
	"context"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/dataplane/bgp/frrtest"
	"fairlead.io/fairlead/dataplane/bgp/ndp"
	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// A session between link-local addresses needs no others: a switch with FRR, unnumbered on two ports, finds the node there by its
// advertisements, and routes IPv4 and IPv6 through it by both links, in the kernel too. Demotion and a restart are as with other peers.
//
//	node  eth1 ─────── swp1  switch
//	      eth2 ─────── swp2
func TestFRRRoutesByLinkLocalAddresses(t *testing.T) {
	noRaceDetector(t)
	node, ok := inNamespace(t)
	if !ok {
		return
	}
	tor := netnstest.New(t, "switch")
	netnstest.Join(netnstest.Link{In: node, Name: "eth1"}, netnstest.Link{In: tor, Name: "swp1"})
	netnstest.Join(netnstest.Link{In: node, Name: "eth2"}, netnstest.Link{In: tor, Name: "swp2"})
	frr := frrtest.StartUnnumbered(t, tor, 0, "swp1", "swp2")
	desired := bgp.Desired{Paths: bgp.NewPaths(path(vip, hop1), path(vip6, "2001:db8::11"))}
	for _, name := range []string{"eth1", "eth2"} {
		desired.Peers = append(desired.Peers, bgp.Peer{
			Name: name, Address: neighbour(t, name), RemoteASN: frrtest.ASN,
			Restart: bgp.GracefulRestart{RestartTime: 5 * time.Minute}, // longer than this test may take to look and to come back
		})
	}
	start := func() *Speaker {
		s, err := New(Config{ASN: 65000, RouterID: addr("192.0.2.1"), ListenPort: 179, Logger: testLogger(t, "node")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Drain(context.Background()) })
		return s
	}
	speaker := start()
	apply(t, speaker, desired)
	both := []netip.Addr{linkLocalOf(t, node, "eth1"), linkLocalOf(t, node, "eth2")}
	if both[1].Less(both[0]) {
		both[0], both[1] = both[1], both[0]
	}
	routed := func(prefix string, want ...netip.Addr) {
		t.Helper()
		frr.WaitNextHops(netip.MustParsePrefix(prefix), want...)
		family := "-4"
		if strings.Contains(prefix, ":") {
			family = "-6"
		}
		frr.Wait("the kernel's route to "+prefix, func() bool {
			route := tor.Run("ip", family, "route", "show", strings.TrimSuffix(strings.TrimSuffix(prefix, "/32"), "/128"), "proto", "bgp")
			for _, a := range both {
				wanted := false
				for _, w := range want {
					wanted = wanted || w == a
				}
				if strings.Contains(route, a.String()+" ") != wanted {
					return false
				}
			}
			return true
		})
	}
	routed(vip, both...)
	routed(vip6, both...)
	if route := tor.Run("ip", "-4", "route", "show", "proto", "bgp"); !strings.Contains(route, "via inet6 "+both[0].String()) {
		t.Errorf("the kernel routes IPv4 otherwise:\n%s", route)
	}
	if steps, err := again(t, speaker, desired); err != nil || len(steps) != 0 {
		t.Errorf("what is there is to be done again: %v, %v", steps, err)
	}

	desired.Peers[0].Demoted = true
	apply(t, speaker, desired)
	second := linkLocalOf(t, node, "eth2")
	routed(vip, second)
	routed(vip6, second)
	if steps, err := again(t, speaker, desired); err != nil || len(steps) != 0 {
		t.Errorf("who is demoted is to be demoted again: %v, %v", steps, err)
	}
	desired.Peers[0].Demoted = false
	apply(t, speaker, desired)
	routed(vip, both...)

	if err := speaker.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	routed(vip, both...) // kept
	speaker = start()
	apply(t, speaker, desired)
	routed(vip6, both...)
	desired.Paths = bgp.NewPaths(listOf(desired.Paths)[1:]...)
	apply(t, speaker, desired)
	routed(vip)
	routed(vip6, both...)
	if err := speaker.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	routed(vip6)
}

// inNamespace runs the test in a namespace of its own. GoBGP dials and listens on goroutines of its own, which are where the process
// is: the test runs again, in another process. In this one it is over then.
func inNamespace(t *testing.T) (here *netnstest.Namespace, inside bool) {
	t.Helper()
	const child = "FAIRLEAD_TEST_IN_NAMESPACE"
	for _, tool := range []string{"zebra", "bgpd", "vtysh", "nsenter"} {
		birdtest.Find(t, tool)
	}
	if os.Getenv(child) == t.Name() {
		return netnstest.Here(t), true
	}
	cmd := netnstest.New(t, "node").Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"="+t.Name())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := lifeline.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil || !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
		t.Fatalf("in a namespace: %v\n%s", err, &out)
	}
	return nil, false
}

// neighbour waits until a router is found behind an interface.
func neighbour(t *testing.T, name string) netip.Addr {
	t.Helper()
	link := ndp.New(name, func() {})
	go link.Run(t.Context())
	var found netip.Addr
	testkit.Until(t, "a router behind "+name, func() bool {
		a, err := link.Neighbour()
		found = a
		return err == nil
	})
	return found
}

func linkLocalOf(t *testing.T, in *netnstest.Namespace, name string) netip.Addr {
	t.Helper()
	for _, word := range strings.Fields(in.Run("ip", "-6", "address", "show", "dev", name, "scope", "link")) {
		if p, err := netip.ParsePrefix(word); err == nil {
			return p.Addr()
		}
	}
	t.Fatalf("%s has no link-local address", name)
	return netip.Addr{}
}

// again lists what a speaker would do if it were told once more.
func again(t *testing.T, s *Speaker, d bgp.Desired) ([]bgp.Step, error) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	_, observed, err := s.compare(t.Context(), d.Paths)
	if err != nil {
		return nil, err
	}
	d.Paths = bgp.Paths{}
	return bgp.Plan(s.asn, d, observed)
}
