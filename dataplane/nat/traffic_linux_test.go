// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"net/netip"
	"testing"

	"fairlead.io/fairlead/api/desired"
)

// K3, K8, K9, K13, K25, K35, K38, K50: every address and port leads to the endpoints of its family, all alike, without a
// node port.
// Rule: K38.
func TestNewConnectionsSpreadEvenly(t *testing.T) {
	l := newLab(t)
	l.apply(web(1, 2, 3))
	for _, c := range []struct {
		name, network string
		to            netip.AddrPort
		n             int
	}{
		{"tcp4", "tcp", at(vip4, 80), 900}, {"tcp6", "tcp", at(vip6, 80), 900}, {"udp4", "udp", at(vip4, 53), 600}, {"udp6", "udp", at(vip6, 53), 600},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]int{}
			for range c.n {
				pod, _ := l.must(l.client, c.network, c.to)
				got[pod]++
			}
			// Chi-square of two degrees of freedom: beyond 54 once in five hundred billion runs.
			chi, even := 0.0, float64(c.n)/3
			for _, pod := range []string{"pod1", "pod2", "pod3"} {
				chi += (float64(got[pod]) - even) * (float64(got[pod]) - even) / even
			}
			if chi > 54 {
				t.Errorf("uneven: %v", got)
			}
		})
	}
}

// K39: endpoints take turns, or a client's address decides, where the Service says so by IPVS' names. A name that this
// node does not know is none.
// Rule: K39.
func TestSchedulersByName(t *testing.T) {
	l := newLab(t)
	for _, c := range []struct {
		scheduler string
		fits      func(got map[string]int) bool
	}{
		{"rr", func(got map[string]int) bool { return got["pod1"] == 20 && got["pod2"] == 20 && got["pod3"] == 20 }},
		{"sh", func(got map[string]int) bool { return len(got) == 1 }},
		{"mh", func(got map[string]int) bool { return len(got) == 3 }},
		{"newer", func(got map[string]int) bool { return len(got) == 3 }},
	} {
		s := web(1, 2, 3)
		s.Scheduler = c.scheduler
		l.apply(s)
		for _, to := range []netip.AddrPort{at(vip4, 80), at(vip6, 80)} {
			got := map[string]int{}
			for range 60 {
				pod, _ := l.must(l.client, "tcp", to)
				got[pod]++
			}
			if !c.fits(got) {
				t.Errorf("%s, %s: %v", c.scheduler, to, got)
			}
		}
	}
}

// K10, K19, K35: what has no endpoint is refused, and so is what nobody declared.
// Rule: K10, K19.
func TestWhatHasNoEndpointIsRefused(t *testing.T) {
	l := newLab(t)
	only4 := web(1)
	only4.Endpoints = only4.Endpoints[:1]
	l.apply(only4)
	l.want("one family", l.client, "tcp", at(vip4, 80), "served")
	l.want("other family", l.client, "tcp", at(vip6, 80), "refused")
	l.want("other family", l.client, "udp", at(vip6, 53), "refused")
	l.apply(web())
	for _, vip := range []netip.Addr{vip4, vip6} {
		l.want("outside without endpoints", l.client, "tcp", at(vip, 80), "refused")
		l.want("outside without endpoints", l.client, "udp", at(vip, 53), "refused")
		l.want("outside undeclared", l.client, "tcp", at(vip, 81), "refused")
		l.want("outside undeclared", l.client, "udp", at(vip, 80), "refused")
		l.want("node without endpoints", l.node, "tcp", at(vip, 80), "refused")
		l.want("node undeclared", l.node, "udp", at(vip, 81), "refused")
		l.want("pod without endpoints", l.pods[0], "tcp", at(vip, 80), "refused")
	}
}

// K19, K23: under the policy Local, a node without an endpoint is silent to clients outside, and serves those inside.
// Rule: K19, K23.
func TestLocalPolicyWithoutLocalEndpoint(t *testing.T) {
	l := newLab(t)
	local := web(3)
	local.Local = true
	l.apply(local)
	for _, vip := range []netip.Addr{vip4, vip6} {
		l.want("outside", l.client, "tcp", at(vip, 80), "silence")
		l.want("outside", l.client, "udp", at(vip, 53), "silence")
		l.want("pod", l.pods[0], "tcp", at(vip, 80), "served")
		l.want("node", l.node, "tcp", at(vip, 80), "served")
		l.want("node", l.node, "udp", at(vip, 53), "served")
	}
	none := web()
	none.Local = true
	l.apply(none)
	l.want("no endpoint anywhere", l.client, "tcp", at(vip4, 80), "refused")
}

// K15: endpoints that serve while they terminate are used while no other is ready.
// Rule: K15.
func TestTerminatingEndpointsServeUntilOneIsReady(t *testing.T) {
	l := newLab(t)
	s := web(1, 2)
	for i := range s.Endpoints[:2] {
		s.Endpoints[i].Ready, s.Endpoints[i].Terminating = false, true
	}
	s.Endpoints[2].Ready, s.Endpoints[2].Serving = false, false
	l.apply(s)
	if pod, _ := l.must(l.client, "tcp", at(vip4, 80)); pod != "pod1" {
		t.Errorf("served by %s", pod)
	}
	ready := *s
	ready.Endpoints = append(append([]desired.Endpoint(nil), s.Endpoints[:2]...), podEndpoints(2)...)
	l.apply(&ready)
	for range 20 {
		if pod, _ := l.must(l.client, "tcp", at(vip4, 80)); pod != "pod2" {
			t.Fatalf("served by %s, though another is ready", pod)
		}
	}
}

// sources asks until every pod named answered, and gives the client address that each saw.
func (l *lab) sources(from string, network string, to netip.AddrPort, pods ...string) map[string]string {
	l.t.Helper()
	ns := l.client
	switch from {
	case "node":
		ns = l.node
	case "pod1":
		ns = l.pods[0]
	}
	seen := map[string]string{}
	for range 200 {
		pod, source := l.must(ns, network, to)
		seen[pod] = source
		if len(seen) == len(pods) {
			break
		}
	}
	for _, pod := range pods {
		if seen[pod] == "" {
			l.t.Errorf("from %s: %s never answered, only %v", from, pod, seen)
		}
	}
	return seen
}

// K11, K22, K42: the source is rewritten only where the answer would bypass this node otherwise.
// Rule: K11, K22, K42.
func TestSourceIsKeptWhereAnswersComeBack(t *testing.T) {
	l := newLab(t)
	l.apply(web(1, 2, 3))
	check := func(what string, got, want map[string]string) {
		t.Helper()
		for pod, source := range want {
			if got[pod] != source {
				t.Errorf("%s: %s saw %s, want %s", what, pod, got[pod], source)
			}
		}
	}
	all := []string{"pod1", "pod2", "pod3"}
	check("outside", l.sources("client", "tcp", at(vip4, 80), all...),
		map[string]string{"pod1": "203.0.113.2", "pod2": "203.0.113.2", "pod3": "10.0.3.1"})
	check("outside udp", l.sources("client", "udp", at(vip4, 53), all...), map[string]string{"pod1": "203.0.113.2", "pod3": "10.0.3.1"})
	check("outside v6", l.sources("client", "tcp", at(vip6, 80), all...),
		map[string]string{"pod1": "2001:db8:c::2", "pod3": "fd00:0:0:3::1"})
	check("node", l.sources("node", "tcp", at(vip4, 80), all...), map[string]string{"pod1": "10.0.1.1", "pod3": "10.0.3.1"})
	check("node v6", l.sources("node", "tcp", at(vip6, 80), all...), map[string]string{"pod2": "fd00:0:0:2::1"})
	check("pod, and hairpin", l.sources("pod1", "tcp", at(vip4, 80), all...),
		map[string]string{"pod1": "10.0.1.1", "pod2": "10.0.1.2", "pod3": "10.0.1.2"})
	check("hairpin v6", l.sources("pod1", "udp", at(vip6, 53), all...), map[string]string{"pod1": "fd00:0:0:1::1", "pod3": "fd00:0:0:1::2"})

	anywhere := web(1)
	for i := range anywhere.Endpoints {
		anywhere.Endpoints[i].Node = "" // as in a slice that somebody wrote
	}
	l.apply(anywhere)
	check("hairpin of an endpoint that names no node", l.sources("pod1", "tcp", at(vip4, 80), "pod1"), map[string]string{"pod1": "10.0.1.1"})
	check("the same, v6", l.sources("pod1", "tcp", at(vip6, 80), "pod1"), map[string]string{"pod1": "fd00:0:0:1::1"})

	local := web(1, 2, 3)
	local.Local = true
	l.apply(local)
	for range 40 {
		if pod, source := l.must(l.client, "tcp", at(vip4, 80)); pod == "pod3" || source != "203.0.113.2" {
			t.Fatalf("Local: %s saw %s", pod, source)
		}
	}
	check("Local, pod", l.sources("pod1", "tcp", at(vip4, 80), all...), map[string]string{"pod1": "10.0.1.1", "pod3": "10.0.1.2"})
}

// K29: only listed clients may come, those inside the cluster too; what is established stays.
// Rule: K29.
func TestSourceRanges(t *testing.T) {
	l := newLab(t)
	l.apply(web(1, 2))
	old, err := l.dial(l.client, "tcp", at(vip4, 80), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	pod, _, err := old.ask()
	if err != nil {
		t.Fatal(err)
	}
	ranged := func(ranges ...string) *desired.Service {
		s := web(1, 2)
		s.SourceRanges = prefixes(ranges...)
		return s
	}
	l.apply(ranged("10.0.1.0/24", "198.51.100.0/24", "2001:db8:c::/64"))
	l.want("client not listed", l.client, "tcp", at(vip4, 80), "silence")
	l.want("client not listed", l.client, "udp", at(vip4, 53), "silence")
	l.want("client listed", l.client, "tcp", at(vip6, 80), "served")
	l.want("pod listed", l.pods[0], "tcp", at(vip4, 80), "served")
	l.want("pod not listed", l.pods[1], "tcp", at(vip4, 80), "silence")
	l.want("node listed by one of its addresses", l.node, "tcp", at(vip4, 80), "served")
	if again, _, err := old.ask(); err != nil || again != pod {
		t.Errorf("established connection: %s, was %s: %v", again, pod, err)
	}
	l.apply(ranged("203.0.113.0/25", "203.0.113.128/25"))
	l.want("client listed", l.client, "tcp", at(vip4, 80), "served")
	l.want("pod not listed", l.pods[0], "tcp", at(vip4, 80), "silence")
	l.want("no range of the family", l.client, "tcp", at(vip6, 80), "silence")
	l.want("undeclared port", l.client, "tcp", at(vip4, 81), "refused")
}
