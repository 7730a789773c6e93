// SPDX-License-Identifier: Apache-2.0

// Package gobgptest runs GoBGP 3 as the switch of a test, a process of its own: it is what users of earlier systems have had, whose end
// version 4 has made of it. It is built from the module in v3, once on a machine.
//
// gobgpd runs without root and without the kernel: what counts is which paths it would share traffic between. Speakers are told
// apart by their address.
//
// Start reading at Start.
package gobgptest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/lifeline"
	"fairlead.io/fairlead/internal/testkit"
)

// ASN is the switch's AS number.
const ASN = 65001

// Switch is a running gobgpd.
type Switch struct {
	t    testing.TB
	cli  string
	at   netip.Addr
	port uint16
	api  uint16
}

// Start runs gobgpd until the test ends, expecting speakers of AS 65000 (a neighbour's ASN, if set) at the addresses and ports given.
func Start(t testing.TB, neighbors ...birdtest.Neighbor) *Switch {
	t.Helper()
	testkit.NotFast(t, "builds and starts GoBGP 3")
	programs, err := built()
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddr("127.0.0.1")
	s := &Switch{t: t, cli: programs["gobgp"], at: at, port: birdtest.FreePort(t, at), api: birdtest.FreePort(t, at)}
	file := filepath.Join(t.TempDir(), "gobgpd.toml")
	if err := os.WriteFile(file, []byte(s.text(neighbors)), 0o600); err != nil {
		t.Fatalf("start gobgpd: %v", err)
	}
	var log testkit.Log
	cmd := exec.Command(programs["gobgpd"], "--config-file", file, "--api-hosts", fmt.Sprintf("%s:%d", at, s.api), "--pprof-disable")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := lifeline.Start(cmd); err != nil {
		t.Fatalf("start gobgpd: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("gobgpd's log:\n%s", log.String())
		}
	})
	s.wait("gobgpd to answer", func() bool {
		_, err := s.ask("global")
		return err == nil
	})
	return s
}

// Address is where gobgpd listens.
func (s *Switch) Address() netip.Addr { return s.at }

// Port is the port at which gobgpd listens.
func (s *Switch) Port() uint16 { return s.port }

// built are the paths of gobgpd and gobgp, by name. The go command keeps them beside what else it has built.
var built = sync.OnceValues(func() (map[string]string, error) {
	tree, err := output("", "go", "list", "-m", "-f", "{{.Dir}}", "fairlead.io/fairlead")
	if err != nil {
		return nil, fmt.Errorf("find this tree: %w", err)
	}
	paths := map[string]string{}
	for _, name := range []string{"gobgpd", "gobgp"} {
		if paths[name], err = output(filepath.Join(tree, "dataplane", "bgp", "gobgptest", "v3"), "go", "tool", "-n", name); err != nil {
			return nil, fmt.Errorf("build %s of GoBGP 3: %w", name, err)
		}
	}
	return paths, nil
})

// output runs a command in a folder and gives what it wrote, without the end of the line. Errors say what it complained of.
func output(dir string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

func (s *Switch) text(neighbors []birdtest.Neighbor) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[global.config]\n as = %d\n router-id = \"192.0.2.201\"\n port = %d\n local-address-list = [\"%s\"]\n", ASN, s.port, s.at)
	for _, n := range neighbors {
		fmt.Fprintf(&b, "[[neighbors]]\n[neighbors.config]\n neighbor-address = \"%s\"\n peer-as = %d\n", n.Address, cmp.Or(n.ASN, 65000))
		fmt.Fprintf(&b, "[neighbors.transport.config]\n local-address = \"%s\"\n remote-port = %d\n", s.at, n.Port)
		b.WriteString("[neighbors.timers.config]\n hold-time = 30\n keepalive-interval = 10\n connect-retry = 1\n")
		b.WriteString("[neighbors.graceful-restart.config]\n enabled = true\n restart-time = 1\n long-lived-enabled = true\n")
		for _, family := range []string{"ipv4-unicast", "ipv6-unicast"} {
			fmt.Fprintf(&b, "[[neighbors.afi-safis]]\n[neighbors.afi-safis.config]\n afi-safi-name = \"%s\"\n", family)
			b.WriteString("[neighbors.afi-safis.mp-graceful-restart.config]\n enabled = true\n")
			b.WriteString("[neighbors.afi-safis.long-lived-graceful-restart.config]\n enabled = true\n restart-time = 600\n")
			b.WriteString("[neighbors.afi-safis.add-paths.config]\n receive = true\n")
		}
	}
	return b.String()
}

func (s *Switch) ask(args ...string) ([]byte, error) {
	out, err := exec.Command(s.cli, append([]string{"-u", s.at.String(), "-p", fmt.Sprint(s.api)}, args...)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("gobgp %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return out, nil
}

// path is one that the switch knows.
type path struct {
	Stale bool        `json:"stale"`
	Attrs []attribute `json:"attrs"`
}

// attribute is what a path has of RFC 4271, or of the documents that add to it.
type attribute struct {
	Type        int        `json:"type"`
	NextHop     netip.Addr `json:"nexthop"`
	Metric      uint32     `json:"metric"`
	Communities []uint32   `json:"communities"`
}

// Types of attributes: RFC 4271, 4.3; RFC 1997; RFC 4760, 3.
const (
	typeNextHop     = 3
	typeMED         = 4
	typeCommunities = 8
	typeReach       = 14
)

// llgrStale is LLGR_STALE (RFC 9494, 3.2).
const llgrStale = 0xFFFF0006

// rank is what decides between paths of one neighbouring AS here: those that are stale for long come last, then a lower MED first.
type rank struct {
	stale bool
	med   uint32
}

func (p path) rank() (r rank) {
	for _, a := range p.Attrs {
		switch a.Type {
		case typeMED:
			r.med = a.Metric
		case typeCommunities:
			r.stale = slices.Contains(a.Communities, llgrStale)
		}
	}
	return r
}

func (p path) nextHop() (hop netip.Addr) {
	for _, a := range p.Attrs {
		if a.Type == typeNextHop || a.Type == typeReach {
			hop = a.NextHop
		}
	}
	return hop
}

// paths are those that the switch has for a prefix, its best one first.
func (s *Switch) paths(prefix netip.Prefix) []path {
	s.t.Helper()
	family := "ipv6"
	if prefix.Addr().Is4() {
		family = "ipv4"
	}
	out, err := s.ask("global", "rib", "-a", family, "-j")
	if err != nil {
		s.t.Fatal(err)
	}
	var table map[string][]path
	if err := json.Unmarshal(out, &table); err != nil {
		s.t.Fatalf("%v in %s", err, out)
	}
	return table[prefix.String()]
}

// NextHops returns where the switch would send packets for prefix, sorted: the best path's, and those of its rank. Nothing if it has no route.
func (s *Switch) NextHops(prefix netip.Prefix) []netip.Addr {
	s.t.Helper()
	var hops []netip.Addr
	all := s.paths(prefix)
	for _, p := range all {
		if p.rank() == all[0].rank() {
			hops = append(hops, p.nextHop())
		}
	}
	slices.SortFunc(hops, netip.Addr.Compare)
	return slices.Compact(hops)
}

// WaitNextHops waits until the switch would send packets for prefix exactly to want, and fails the test after a while.
func (s *Switch) WaitNextHops(prefix netip.Prefix, want ...netip.Addr) {
	s.t.Helper()
	s.wait(fmt.Sprintf("%s to go to %v", prefix, want), func() bool { return slices.Equal(s.NextHops(prefix), want) })
}

// WaitFresh waits until no path for prefix is one that the switch kept of a speaker that it lost.
func (s *Switch) WaitFresh(prefix netip.Prefix) {
	s.t.Helper()
	s.wait(fmt.Sprintf("no path of %s to be stale", prefix), func() bool {
		return !slices.ContainsFunc(s.paths(prefix), func(p path) bool { return p.Stale || p.rank().stale })
	})
}

// WaitHolds waits until the switch has paths for prefix to exactly these next hops, sorted, whether it would use them or not.
func (s *Switch) WaitHolds(prefix netip.Prefix, want ...netip.Addr) {
	s.t.Helper()
	s.wait(fmt.Sprintf("paths of %s to %v", prefix, want), func() bool {
		var hops []netip.Addr
		for _, p := range s.paths(prefix) {
			hops = append(hops, p.nextHop())
		}
		slices.SortFunc(hops, netip.Addr.Compare)
		return slices.Equal(hops, want)
	})
}

func (s *Switch) wait(what string, condition func() bool) {
	s.t.Helper()
	testkit.Eventually(s.t, what, func() error {
		if condition() {
			return nil
		}
		neighbors, err := s.ask("neighbor")
		if err != nil {
			return err
		}
		return fmt.Errorf("gobgpd has\n%s", neighbors)
	})
}
