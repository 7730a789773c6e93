// SPDX-License-Identifier: Apache-2.0

// Package frrtest runs FRR's bgpd, the other BGP switch that none of us wrote, as a process of a test.
//
// bgpd runs alone, without zebra, without root and without the kernel: it takes every next hop for reachable, and what
// counts is which paths it would share traffic between. Speakers are told apart by their address.
//
// Start reading at Start.
package frrtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/testkit"
)

// ASN is bgpd's AS number.
const ASN = 65001

// FRR is a running bgpd.
type FRR struct {
	t     testing.TB
	dir   string
	vtysh string
	at    netip.Addr
	port  uint16
}

// Start runs bgpd until the test ends, expecting speakers of AS 65000 (a neighbour's ASN, if set) at the addresses and
// ports given. Without FRR on this machine the test is skipped, or fails if birdtest.RequireTools asks for that.
func Start(t testing.TB, neighbors ...birdtest.Neighbor) *FRR {
	t.Helper()
	return StartAt(t, netip.MustParseAddr("127.0.0.1"), neighbors...)
}

// StartAt is Start at an address of this machine.
func StartAt(t testing.TB, at netip.Addr, neighbors ...birdtest.Neighbor) *FRR {
	t.Helper()
	bgpd := birdtest.Find(t, "bgpd")
	f := &FRR{t: t, vtysh: birdtest.Find(t, "vtysh"), at: at}
	dir, err := os.MkdirTemp("", "frr") // not t.TempDir: the path of a socket has room for some hundred bytes
	if err != nil {
		t.Fatalf("start bgpd: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f.dir, f.port = dir, birdtest.FreePort(t, f.Address())
	if err := os.WriteFile(f.file("conf"), []byte(f.text(neighbors)), 0o644); err != nil {
		t.Fatalf("start bgpd: %v", err)
	}
	cmd := exec.Command(bgpd, "--config_file", f.file("conf"), "--pid_file", f.file("pid"), "--no_zebra", "--skip_runas",
		"--bgp_port", fmt.Sprint(f.port), "--listenon", f.Address().String(), "--vty_port", "0", "--vty_socket", dir)
	if err := lifeline.Start(cmd); err != nil {
		t.Fatalf("start bgpd: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(f.file("log"))
			t.Logf("bgpd's log:\n%s", log)
		}
	})
	f.Wait("bgpd to answer", func() bool {
		_, err := f.ask("show version")
		return err == nil
	})
	return f
}

// Address is where bgpd listens.
func (f *FRR) Address() netip.Addr { return f.at }

// Port is the port at which bgpd listens.
func (f *FRR) Port() uint16 { return f.port }

func (f *FRR) file(ext string) string { return filepath.Join(f.dir, "bgpd."+ext) }

func (f *FRR) text(neighbors []birdtest.Neighbor) string {
	var b strings.Builder
	fmt.Fprintf(&b, "log file %s\nrouter bgp %d\n bgp router-id 192.0.2.200\n no bgp ebgp-requires-policy\n", f.file("log"), ASN)
	b.WriteString(" bgp bestpath as-path multipath-relax\n bgp long-lived-graceful-restart stale-time 600\n")
	for _, n := range neighbors {
		asn := n.ASN
		if asn == 0 {
			asn = 65000
		}
		for _, line := range []string{
			fmt.Sprintf("remote-as %d", asn), fmt.Sprintf("port %d", n.Port), "timers 10 30", "timers connect 1",
			"disable-connected-check", "update-source " + f.Address().String(),
		} {
			fmt.Fprintf(&b, " neighbor %s %s\n", n.Address, line)
		}
	}
	for _, family := range []string{"ipv4", "ipv6"} {
		fmt.Fprintf(&b, " address-family %s unicast\n  maximum-paths 16\n", family)
		for _, n := range neighbors {
			fmt.Fprintf(&b, "  neighbor %s activate\n", n.Address)
		}
		b.WriteString(" exit-address-family\n")
	}
	return b.String()
}

func (f *FRR) ask(commands ...string) ([]byte, error) {
	args := []string{"--vty_socket", f.dir}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	return exec.Command(f.vtysh, args...).Output()
}

// path is one that the switch knows.
type path struct {
	Multipath bool
	Stale     bool
	BestPath  struct{ Overall bool }
	NextHops  []struct {
		IP netip.Addr
	}
	ExtendedCommunity struct{ String string }
}

// serves tells whether the switch would send packets there.
func (p path) serves() bool { return p.Multipath || p.BestPath.Overall }

func (f *FRR) paths(prefix netip.Prefix) []path {
	f.t.Helper()
	all, err := f.asked(prefix)
	if err != nil {
		f.t.Fatalf("bgpd: %v", err)
	}
	return all[0]
}

// asked gives the paths of prefixes, one after the other.
func (f *FRR) asked(prefixes ...netip.Prefix) (all [][]path, err error) {
	var commands []string
	for _, p := range prefixes {
		family := "ipv6"
		if p.Addr().Is4() {
			family = "ipv4"
		}
		commands = append(commands, fmt.Sprintf("show bgp %s unicast %s json", family, p))
	}
	out, err := f.ask(commands...)
	if err != nil {
		return nil, fmt.Errorf("routes to %v: %w", prefixes, err)
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	for range prefixes {
		var answer struct{ Paths []path }
		if err := answers.Decode(&answer); err != nil {
			return nil, fmt.Errorf("routes to %v: %w in %s", prefixes, err, out)
		}
		all = append(all, answer.Paths)
	}
	return all, nil
}

// WatchEither looks whether the switch has a way by one of two prefixes, until the returned function is called, which tells how
// often it looked, and how often it found none. A path that was received counts once bgpd has chosen it.
func (f *FRR) WatchEither(one, other netip.Prefix) (stop func() (looks, gaps int)) {
	f.t.Helper()
	looks, gaps := 0, 0
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			// Neither of them goes before the other one has come: one is there at the first or at the third look, whichever way.
			if all, err := f.asked(one, other, one); err == nil {
				if looks++; !slices.ContainsFunc(slices.Concat(all...), path.serves) {
					gaps++
				}
			}
			select {
			case <-end:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() (int, int) {
		close(end)
		<-ended
		return looks, gaps
	}
}

// NextHops returns where the switch sends packets for prefix, sorted; nothing if it has no route.
func (f *FRR) NextHops(prefix netip.Prefix) []netip.Addr {
	f.t.Helper()
	var hops []netip.Addr
	for _, p := range f.paths(prefix) {
		if p.serves() {
			hops = append(hops, p.NextHops[0].IP)
		}
	}
	slices.SortFunc(hops, netip.Addr.Compare)
	return slices.Compact(hops)
}

// WaitHolds waits until the switch knows paths for prefix to exactly these next hops, sorted, whether it uses them or not.
func (f *FRR) WaitHolds(prefix netip.Prefix, want ...netip.Addr) {
	f.t.Helper()
	f.Wait(fmt.Sprintf("paths of %s to %v", prefix, want), func() bool {
		var hops []netip.Addr
		for _, p := range f.paths(prefix) {
			hops = append(hops, p.NextHops[0].IP)
		}
		slices.SortFunc(hops, netip.Addr.Compare)
		return slices.Equal(hops, want)
	})
}

// WaitStale waits until the switch has noticed that it lost the speakers of all paths for prefix.
func (f *FRR) WaitStale(prefix netip.Prefix) {
	f.t.Helper()
	f.Wait(fmt.Sprintf("paths of %s to be stale", prefix), func() bool {
		all := f.paths(prefix)
		return len(all) > 0 && !slices.ContainsFunc(all, func(p path) bool { return !p.Stale })
	})
}

// WaitNextHops waits until the switch sends packets for prefix exactly to want, and fails the test after a while.
func (f *FRR) WaitNextHops(prefix netip.Prefix, want ...netip.Addr) {
	f.t.Helper()
	f.Wait(fmt.Sprintf("%s to go to %v", prefix, want), func() bool { return slices.Equal(f.NextHops(prefix), want) })
}

// WaitWeights waits until the switch knows exactly so much of the link bandwidth of next hops, in Mbit/s and 0 for nothing.
func (f *FRR) WaitWeights(prefix netip.Prefix, want map[netip.Addr]float64) {
	f.t.Helper()
	f.Wait(fmt.Sprintf("%s to weigh %v", prefix, want), func() bool { return maps.Equal(f.weights(prefix), want) })
}

func (f *FRR) weights(prefix netip.Prefix) map[netip.Addr]float64 {
	f.t.Helper()
	out := map[netip.Addr]float64{}
	for _, p := range f.paths(prefix) {
		_, text, _ := strings.Cut(p.ExtendedCommunity.String, "LB:")
		var as, bytes int
		_, _ = fmt.Sscanf(text, "%d:%d", &as, &bytes)
		out[p.NextHops[0].IP] = float64(bytes) / 125_000
	}
	return out
}

// Wait waits for a condition, and fails the test if it does not come.
func (f *FRR) Wait(what string, condition func() bool) {
	f.t.Helper()
	testkit.Eventually(f.t, what, func() error {
		if condition() {
			return nil
		}
		summary, err := f.ask("show bgp summary")
		if err != nil {
			return err
		}
		return fmt.Errorf("bgpd has\n%s", summary)
	})
}
