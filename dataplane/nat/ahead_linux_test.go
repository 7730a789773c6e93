// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// kubeProxy is the part of kube-proxy's table that looks at what is sent, and at what it drops: a Service with policy Local
// whose endpoint is on another node.
const kubeProxy = `
table %[1]s kube-proxy {
	map no-endpoint-services {
		type %[3]s . inet_proto . inet_service : verdict
		elements = { %[2]s . tcp . 80 : drop }
	}
	chain service-endpoints-check {
		%[1]s daddr . meta l4proto . th dport vmap @no-endpoint-services
	}
	chain filter-output {
		type filter hook output priority %[4]d
		ct state new jump service-endpoints-check
	}
}`

// kube-proxy's filters are asked before translation up to 1.33, though its chains of nat come later: programs of the node
// hear nothing, and the agent says so, once. From 1.34 on they are served, and pods always are.
func TestKubeProxyThatDropsBeforeTranslationIsTold(t *testing.T) {
	l := newLab(t)
	var log testkit.Log
	var err error
	if l.nat, err = New(Options{Node: "n1", ClusterCIDRs: prefixes("10.0.0.0/16", "fd00::/16"), NetNS: l.node.FD(), Log: slog.New(slog.NewTextHandler(&log, nil))}); err != nil {
		t.Fatal(err)
	}
	local := web(3)
	local.Local = true
	l.apply(local)
	table := func(priority int) {
		_, _ = l.node.Try("nft", "delete table ip kube-proxy; delete table ip6 kube-proxy")
		l.node.Feed(fmt.Sprintf(kubeProxy, "ip", vip4, "ipv4_addr", priority)+fmt.Sprintf(kubeProxy, "ip6", vip6, "ipv6_addr", priority), "nft", "-f", "-")
		for range 3 {
			if err := l.nat.repair(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	said := func() int { return strings.Count(log.String(), "kube-proxy before 1.34") }
	table(0)
	if n := said(); n != 0 {
		t.Errorf("kube-proxy of today is told %d times:\n%s", n, log.String())
	}
	l.want("kube-proxy of today, node", l.node, "tcp", at(vip4, 80), "served")
	l.want("kube-proxy of today, node", l.node, "tcp", at(vip6, 80), "served")
	table(-110)
	if n := said(); n != 1 {
		t.Errorf("kube-proxy before 1.34 is told %d times, want once:\n%s", n, log.String())
	}
	l.want("kube-proxy before 1.34, node", l.node, "tcp", at(vip4, 80), "silence")
	l.want("kube-proxy before 1.34, pod", l.pods[0], "tcp", at(vip4, 80), "served")
	l.want("kube-proxy before 1.34, pod", l.pods[0], "tcp", at(vip6, 80), "served")
}
