// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/frrtest"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// leaf writes a BGPPeer by interface for the nodes.
func leaf(l *lab.Lab, name, spec string) {
	l.Manifests.Put("peer-"+name+".yaml", fmt.Sprintf(`apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: %s, annotations: {fairlead.io/mode: node}}
spec: {myASN: %d, peerASN: %d, holdTime: 3s, %s}
`, name, lab.ASN, frrtest.ASN, spec))
}

// linkLocal is the address of an interface that needs no configuration.
func linkLocal(t *testing.T, show func(program string, args ...string) string, name string) netip.Addr {
	t.Helper()
	var found netip.Addr
	testkit.Until(t, "a link-local address of "+name, func() bool {
		for _, word := range strings.Fields(show("ip", "-6", "address", "show", "dev", name, "scope", "link", "-tentative")) {
			if p, err := netip.ParsePrefix(word); err == nil {
				found = p.Addr()
			}
		}
		return found.IsValid()
	})
	return found
}

// Nodes peer with a switch that has no addresses, each by its own link: the switch routes to the node that serves by that node's
// link-local address, in its kernel, too. The session comes back when the agent does, and when the switch has another address.
//
//	n1  eth1 ─────── swp1  switch
//	n2  eth1 ─────── swp2
func TestNodesPeerByInterface(t *testing.T) {
	tor := netnstest.New(t, "switch") // first: a thread that was in a namespace ends, and with it the processes that it started
	inTor := func(program string, args ...string) string {
		t.Helper()
		out, err := tor.Command(program, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("switch: %s %s: %v: %s", program, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	l, machines := withMachines(t, 2)
	var at []netip.Addr
	for i, m := range machines {
		port := fmt.Sprint("swp", i+1)
		m.Cable(tor, port, "eth1")
		linkLocal(t, inTor, port)
		at = append(at, linkLocal(t, m.Run, "eth1"))
	}
	both := slices.SortedFunc(slices.Values(at), netip.Addr.Compare)
	frr := frrtest.StartUnnumbered(t, tor, 10*time.Minute, "swp1", "swp2")
	leaf(l, "leaf", "interface: eth1")
	for _, m := range machines {
		m.Speak(fmt.Sprintf("bgp: {asn: %d}", lab.ASN))
	}
	frr.WaitNextHops(prefix(0), both...)
	l.Manifests.Service(1, 2)
	frr.WaitNextHops(prefix(1), at[1])
	frr.Wait("the kernel's route", func() bool {
		return strings.Contains(inTor("ip", "-4", "route", "show", lab.VIP(1).String(), "proto", "bgp"), "via inet6 "+at[1].String()+" dev swp2")
	})
	seen := func(what string, want ...string) {
		t.Helper()
		l.Eventually(what, func() error {
			peers, _, _ := l.CLI("get", "peers", "-o", "json")
			why, _, _ := l.CLI("why", lab.VIP(0).String())
			for _, w := range want {
				if !strings.Contains(peers+why, w) {
					return fmt.Errorf("%q is not in %s%s", w, peers, why)
				}
			}
			return nil
		})
	}
	seen("sessions", `"interface": "eth1"`, `"address": ""`, "leaf interface eth1 established with 2 of 2 nodes")
	l.Manifests.Service(0, 2)
	frr.WaitNextHops(prefix(0), at[1])
	l.Eventually("end of the withdrawal", func() error {
		if out, _, _ := l.CLI("get", "routes", "-o", "json"); strings.Contains(out, "withdrawing") {
			return fmt.Errorf("get routes: %s", out)
		}
		return nil
	})
	l.Manifests.Service(0, 1, 2)
	frr.WaitNextHops(prefix(0), both...)

	machines[1].StopAgent()
	frr.WaitNextHops(prefix(0), at[0]) // those of node 2 rank last
	frr.WaitNextHops(prefix(1), at[1])
	machines[1].StartAgent()
	frr.WaitNextHops(prefix(0), both...)

	other := netip.MustParseAddr("fe80::f:2")
	before := linkLocal(t, inTor, "swp2")
	inTor("ip", "-6", "address", "add", other.String()+"/64", "dev", "swp2", "nodad")
	inTor("ip", "-6", "address", "del", before.String()+"/64", "dev", "swp2")
	// The session to the former address ends by its timers first.
	l.EventuallyWithin("the switch's other address", 5*time.Minute, func() error {
		if open := machines[1].Run("ss", "-Htn", "state", "established"); !strings.Contains(open, "["+other.String()+"]:179") {
			return fmt.Errorf("connections are %s", open)
		}
		return nil
	})
	frr.WaitNextHops(prefix(0), both...)
	frr.WaitNextHops(prefix(1), at[1])
	seen("sessions", "leaf interface eth1 established with 2 of 2 nodes")

	leaf(l, "spine", "interface: eth2")
	seen("what is in the way", "spine interface eth2 established with 0 of 2 nodes", "no such network interface")
	l.Eventually("word in the log", func() error {
		if log := machines[0].Log(); !strings.Contains(log, "peer left out: no neighbour found") || !strings.Contains(log, `"interface":"eth2"`) {
			return fmt.Errorf("%s", log)
		}
		return nil
	})
}
