// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"fmt"
	"os"
	"testing"

	"fairlead.io/fairlead/internal/netnstest"
	"fairlead.io/fairlead/internal/testkit"
)

// bridge has the lab's first pod and another one that it gives sit on one bridge of the node, which netfilter sees or not.
func (l *lab) bridge(seen int) (neighbour *netnstest.Namespace) {
	l.t.Helper()
	l.node.Run("ip", "link", "add", "br0", "type", "bridge", "nf_call_iptables", fmt.Sprint(seen), "nf_call_ip6tables", fmt.Sprint(seen))
	if _, err := os.Stat("/proc/sys/net/bridge"); err == nil {
		l.node.SetSysctl("bridge/bridge-nf-call-iptables", "0")
		l.node.SetSysctl("bridge/bridge-nf-call-ip6tables", "0")
	}
	l.node.Run("ip", "address", "flush", "dev", "pod1")
	l.node.Run("ip", "address", "add", "10.0.1.1/24", "dev", "br0")
	l.node.Run("ip", "address", "add", "fd00:0:0:1::1/64", "dev", "br0", "nodad")
	l.node.Run("ip", "link", "set", "br0", "up")
	l.node.Run("ip", "link", "set", "pod1", "master", "br0")
	neighbour = netnstest.New(l.t, "neighbour")
	netnstest.Join(netnstest.Link{In: l.node, Name: "pod11"},
		netnstest.Link{In: neighbour, Name: "eth0", Addresses: []string{"10.0.1.3/24", "fd00:0:0:1::3/64"}})
	l.node.Run("ip", "link", "set", "pod11", "master", "br0")
	neighbour.Run("ip", "route", "add", "default", "via", "10.0.1.1")
	neighbour.Run("ip", "route", "add", "default", "via", "fd00:0:0:1::1")
	l.pods[0].Run("ip", "neigh", "flush", "all") // which knew the node by another card's address
	for _, pod := range podEndpoints(1) {
		testkit.Until(l.t, "pods of the bridge hear each other and the node", func() bool {
			_, _, near := l.once(neighbour, "udp", at(pod.Address, podPort), silence)
			_, _, node := l.once(l.node, "udp", at(pod.Address, podPort), silence)
			return near == nil && node == nil
		})
	}
	return neighbour
}

// A pod is served by one that sits on the same bridge. Where netfilter sees what is bridged (br_netfilter) its source is
// kept, else the answer would miss the node, and it is the node's.
func TestPodsOfOneBridgeServeEachOther(t *testing.T) {
	for name, seen := range map[string]int{"br_netfilter": 1, "not seen": 0} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat("/proc/sys/net/bridge"); err != nil && seen == 1 {
				t.Skip("this kernel has no br_netfilter")
			}
			l := newLab(t)
			neighbour := l.bridge(seen)
			l.apply(web(1))
			want := map[bool][]string{false: {"10.0.1.1", "10.0.1.3"}, true: {"fd00:0:0:1::1", "fd00:0:0:1::3"}}
			for range 3 {
				for _, v6 := range []bool{false, true} {
					vip := vip4
					if v6 {
						vip = vip6
					}
					for network, port := range map[string]uint16{"tcp": 80, "udp": 53} {
						if pod, source := l.must(neighbour, network, at(vip, port)); pod != "pod1" || source != want[v6][seen] {
							t.Errorf("%s to %s: %s saw %s, want %s", network, vip, pod, source, want[v6][seen])
						}
						if pod, source := l.must(l.node, network, at(vip, port)); source != want[v6][0] {
							t.Errorf("the node, %s to %s: %s saw %s, want %s", network, vip, pod, source, want[v6][0])
						}
					}
				}
			}
		})
	}
}
