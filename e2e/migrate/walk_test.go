// SPDX-License-Identifier: Apache-2.0

// Package migrate_test walks the way from kube-loadbalancer-controller, with real members and a real switch: the order of
// steps that `fairlead migrate kube-loadbalancer-controller` gives for two replicas on three masters.
package migrate_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/dataplane/bgp/gobgp"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func TestMain(m *testing.M) { lab.Main(m) }

// replica is one of the old controller: a speaker at the address of its master that announces what the old system does.
func replica(t *testing.T, l *lab.Lab, master *lab.Member) (stop func()) {
	t.Helper()
	address := netip.MustParseAddr(master.Address)
	s, err := gobgp.New(gobgp.Config{ASN: lab.ASN, RouterID: address, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var paths []bgp.Path
	for _, node := range []int{1, 2} {
		paths = append(paths, bgp.Path{Prefix: prefix, NextHop: lab.NodeAddress(node), Origin: bgp.OriginIncomplete})
	}
	err = s.Apply(t.Context(), bgp.Desired{Paths: bgp.NewPaths(paths...), Peers: []bgp.Peer{{
		Name: "switch", Address: l.Bird.Address(), Port: l.Bird.Port(), RemoteASN: l.Bird.ASN(), LocalAddress: address, EBGPMultihop: 2,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
		defer cancel()
		if err := s.Drain(ctx); err != nil { // with Cease, as the old controller ends
			t.Error(err)
		}
	}
}

var prefix = fsm.HostPrefix(lab.VIP(0))

var memberLine = regexp.MustCompile(`(?m)^- \{name: (m\d), .*\n`)

// configure gives a member the controller.yaml of a step: which members it lists, and whether it may found a group.
func configure(t *testing.T, m *lab.Member, found bool, members ...string) {
	t.Helper()
	text, err := os.ReadFile(m.Config)
	if err != nil {
		t.Fatal(err)
	}
	next := memberLine.ReplaceAllStringFunc(string(text), func(line string) string {
		for _, name := range members {
			if strings.HasPrefix(line, "- {name: "+name+",") {
				return line
			}
		}
		return ""
	})
	if !found {
		next = strings.Replace(next, "bootstrapToken: lab\n", "", 1)
	}
	if err := os.WriteFile(m.Config, []byte(next), 0o600); err != nil {
		t.Fatal(err)
	}
}

// kube-loadbalancer-controller §13 row 15: old pods replaced one at a time lose no path.
func TestOldPodsReplacedOneAtATimeLoseNoPath(t *testing.T) {
	l := lab.New(t, lab.Options{Stopped: true})
	for n := 1; n <= 3; n++ {
		l.Manifests.Node(n, true)
	}
	l.Manifests.Service(0, 1, 2)
	m1, m2, m3 := l.Member("m1"), l.Member("m2"), l.Member("m3")
	end1, end2 := replica(t, l, m1), replica(t, l, m2) // loadbalancer-controller-0 and -1
	l.Bird.WaitEstablished("m1", "m2")
	l.Bird.WaitNextHops(prefix, lab.NodeAddress(1), lab.NodeAddress(2))
	stop := l.NeverMissing(prefix)

	original, err := os.ReadFile(m3.Config)
	if err != nil {
		t.Fatal(err)
	}
	configure(t, m3, true, "m3") // first/controller.yaml
	m3.Start()
	l.Bird.WaitEstablished("m3")
	voters(t, l, 1)
	if err := os.WriteFile(m3.Config, original, 0o600); err != nil {
		t.Fatal(err)
	}
	all := []string{"m1", "m2", "m3"}
	configure(t, m3, false, all...) // group/controller.yaml, with which its pod is restarted
	m3.Stop()
	m3.Start()
	l.Bird.WaitEstablished("m3")

	end2()
	configure(t, m2, false, all...)
	m2.Start()
	l.Bird.WaitEstablished("m2")
	voters(t, l, 2)
	end1()
	configure(t, m1, false, all...)
	m1.Start()
	l.Bird.WaitEstablished("m1")
	voters(t, l, 3)
	l.Agreed()
	stop()

	// What is left is a group as any other.
	l.Manifests.Service(0, 2, 3)
	l.Bird.WaitNextHops(prefix, lab.NodeAddress(2), lab.NodeAddress(3))
}

// voters waits until the group has so many.
func voters(t *testing.T, l *lab.Lab, want int) {
	t.Helper()
	l.Eventually(fmt.Sprintf("%d voters", want), func() error {
		s, ok := l.Status()
		n := 0
		for _, m := range s.Members {
			if m.Suffrage == "voter" {
				n++
			}
		}
		if !ok || n != want {
			return fmt.Errorf("%d of %d members vote", n, len(s.Members))
		}
		return nil
	})
}
