// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/testkit"
)

// The checks that kube-loadbalancer-controller §13 and the documents of the old system tell people to do, with the
// gobgp command that the image ships.

// gobgp builds the command once for all tests of this process.
var gobgp = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fairlead-gobgp-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "gobgp")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/osrg/gobgp/v4/cmd/gobgp").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return path, nil
})

// requireGobgp skips a test where the command cannot be built.
func requireGobgp(t *testing.T) {
	t.Helper()
	if _, err := gobgp(); err != nil {
		t.Skipf("the gobgp command cannot be built: %v", err)
	}
}

// ask runs the gobgp command on a member's host.
func ask(t *testing.T, m *lab.Member, args ...string) (string, error) {
	t.Helper()
	path, err := gobgp()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, append([]string{"-u", m.Address}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("gobgp %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// neighbour tells whether `gobgp neighbor` shows a session with the switch.
func neighbour(t *testing.T, m *lab.Member, bird netip.Addr) error {
	t.Helper()
	out, err := ask(t, m, "neighbor")
	if err != nil {
		return err
	}
	// Peer AS Up/Down State |#Received Accepted
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 3 && f[0] == bird.String() && f[3] == "Establ" {
			return nil
		}
	}
	return errors.New(out)
}

// Rule: kube-loadbalancer-controller §13 row 1.
func TestOldCheckShowsTheSwitchEstablished(t *testing.T) {
	requireGobgp(t)
	l := lab.New(t, lab.Options{Management: true, Stopped: true})
	for _, m := range l.Members {
		m.Start()
	}
	for _, m := range l.Members {
		l.Eventually("session of "+m.Name, func() error { return neighbour(t, m, l.Bird.Address()) })
	}
	for name, s := range l.Bird.Sessions() { // the first attempt was good, so that nobody waited for a second one
		if !s.Established || s.Opened != 1 || strings.Contains(l.Bird.Log(), name+": Error") {
			t.Errorf("the session of %s is %+v:\n%s", name, s, l.Bird.Log())
		}
	}
	if _, err := ask(t, l.Members[0], "global", "rib", "add", "203.0.113.1/32"); err == nil || !strings.Contains(err.Error(), "fairlead get") {
		t.Errorf("adding a path by hand: %v", err)
	}
}

// rib is what `gobgp global rib -a ipv4` lists: the next hops of each prefix, in order, each as often as it is there.
func rib(t *testing.T, m *lab.Member) (map[netip.Prefix][]netip.Addr, error) {
	t.Helper()
	out, err := ask(t, m, "global", "rib", "-a", "ipv4")
	if err != nil {
		return nil, err
	}
	table := map[netip.Prefix][]netip.Addr{}
	for line := range strings.Lines(out) {
		// *> 203.0.113.1/32 192.0.2.101 00:00:01 [{Origin: ?}]
		f := strings.Fields(line)
		if len(f) < 3 || !strings.HasPrefix(f[0], "*") {
			continue
		}
		p, err := netip.ParsePrefix(f[1])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		hop, err := netip.ParseAddr(f[2])
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		table[p] = append(table[p], hop)
	}
	for _, hops := range table {
		slices.SortFunc(hops, netip.Addr.Compare)
	}
	return table, nil
}

// Rule: kube-loadbalancer-controller §13 row 4.
func TestRIBListsTheNodesThatCarryPods(t *testing.T) {
	requireGobgp(t)
	l := started(t, lab.Options{Management: true})
	twoPods := strings.Replace(lab.Service(1, 3, 3), `"10.3.`, `"10.33.`, 1) // on node 3, each with its address
	l.Manifests.Put("svc-1.yaml", twoPods)
	same := func(want map[netip.Prefix][]netip.Addr) {
		t.Helper()
		for _, m := range l.Members {
			l.Eventually("table of "+m.Name, func() error {
				got, err := rib(t, m)
				if err == nil && !maps.EqualFunc(got, want, slices.Equal) {
					err = fmt.Errorf("it has %v, want %v", got, want)
				}
				return err
			})
		}
	}
	n := lab.NodeAddress
	same(map[netip.Prefix][]netip.Addr{prefix(0): {n(1), n(2)}, prefix(1): {n(3)}})
	l.Manifests.Service(0, 3) // both pods move to node 3
	l.Manifests.Remove("svc-1.yaml")
	same(map[netip.Prefix][]netip.Addr{prefix(0): {n(3)}})
}

// One neighbour without ADD-PATH is one path; with it a switch that merges equal paths installs both next hops.
// Rule: kube-loadbalancer-controller §13 row 6.
func TestWithoutAddPathExactlyOneRemains(t *testing.T) {
	for _, addPath := range []bool{false, true} {
		t.Run(fmt.Sprintf("add-path=%t", addPath), func(t *testing.T) {
			want := 1
			if addPath {
				want = 2
			}
			l := lab.New(t, lab.Options{Members: 1, Bird: birdtest.Config{NoAddPath: !addPath}})
			nodes := []netip.Addr{lab.NodeAddress(1), lab.NodeAddress(2)}
			l.Manifests.Node(1, true)
			l.Manifests.Node(2, true)
			l.Manifests.Service(0, 1, 2)
			l.Bird.Wait("the service", func() bool { return len(l.Bird.NextHops(prefix(0))) >= want })
			l.Manifests.Service(1, 1) // once it has come nothing of the first one is on its way
			l.Bird.WaitNextHops(prefix(1), nodes[0])
			merged := l.Bird.ECMP()
			i := slices.IndexFunc(merged, func(e birdtest.Entry) bool { return e.Prefix == prefix(0) })
			if i < 0 || len(merged[i].NextHops) != want || len(l.Bird.Routes()) != want+1 {
				t.Fatalf("merged %v of %+v, want %d next hops", merged, l.Bird.Routes(), want)
			}
			for _, hop := range merged[i].NextHops {
				if !slices.Contains(nodes, hop) {
					t.Errorf("next hop %s is no node of the service", hop)
				}
			}
		})
	}
}

// Another BGP daemon of the host, as Calico's, has port 179; the member has port 1790, as the old config_bgp.toml says.
// Rule: kube-loadbalancer-controller §13 row 13.
func TestPortBesideAnotherSpeaker(t *testing.T) {
	l := lab.New(t, lab.Options{Members: 1, Stopped: true, ConfigBGP: configBGP})
	m := l.Members[0]
	here, there := netip.MustParseAddr(m.Address), netip.MustParseAddr("127.0.0.50")
	mate := birdtest.Start(t, birdtest.Config{ // the other daemon's on another node
		Address: there, ASN: 64513, Neighbors: []birdtest.Neighbor{{Name: "calico", Address: here, Port: 179, ASN: 64512}},
	})
	other := birdtest.Start(t, birdtest.Config{
		Address: here, Port: 179, ASN: 64512, Neighbors: []birdtest.Neighbor{{Name: "mate", Address: there, Port: mate.Port(), ASN: 64513}},
	})
	other.WaitEstablished("mate")
	before := other.Sessions()["mate"].Opened

	m.Start()
	l.Bird.WaitEstablished("m1")
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(m.Address, "1790"), testkit.Patience)
	if err != nil {
		t.Fatalf("the member listens elsewhere: %v", err)
	}
	conn.Close()
	was := l.Bird.Sessions()["m1"].Opened
	m.Stop()
	m.Start()
	l.Bird.Wait("the session to return", func() bool {
		s := l.Bird.Sessions()["m1"]
		return s.Established && s.Opened != was
	})
	if s := other.Sessions()["mate"]; !s.Established || s.Opened != before {
		t.Errorf("the other daemon's session is %+v, it was opened %d times before", s, before)
	}
}
