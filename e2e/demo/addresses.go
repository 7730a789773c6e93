// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"

	"fairlead.io/fairlead/e2e/demo/internal/hops"
	"fairlead.io/fairlead/e2e/demo/internal/sandbox"
)

// The networks that are there all along; nodes, members and pods have their own.
const (
	here      = sandbox.Namespace("") // etcd and the API server, with this program
	clientNet = sandbox.Namespace("client")
	switchNet = sandbox.Namespace("switch")
)

const (
	nodeCount   = 3
	memberCount = 3
	clientCount = 20

	memberASN = 65000
	switchASN = 65001

	lan     = "lan" // the switch's side of the LAN
	podPort = 8080
	webPort = 80
)

var (
	switchAddress = netip.MustParseAddr("192.0.2.1")
	kubeAddress   = netip.MustParseAddr("192.0.2.30")
	clientGateway = netip.MustParseAddr("198.51.100.1")
)

func nodeAddress(n int) netip.Addr   { return netip.AddrFrom4([4]byte{192, 0, 2, byte(10 + n)}) }
func memberAddress(m int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(20 + m)}) }

// clientAddress is of client c, from 0.
func clientAddress(c int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, byte(100 + c)}) }

// podAddress is the i-th, from 1, on node n.
func podAddress(n, i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(n), byte(10 + i)}) }

func podGateway(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, byte(n), 1}) }

func podNet(n int) netip.Prefix { return netip.PrefixFrom(podGateway(n), 24).Masked() }

// linkAddress is of a machine on the LAN, by its address there.
func linkAddress(a netip.Addr) hops.MAC { return hops.MAC{2, 0, 0, 0, 0, a.As4()[3]} }

// ownerOf names a machine by its link address.
func ownerOf(m hops.MAC) string { return hopName(netip.AddrFrom4([4]byte{192, 0, 2, m[5]})) }

// hopName names a next hop of the switch by its address, for people.
func hopName(a netip.Addr) string {
	for n := 1; n <= nodeCount; n++ {
		if nodeAddress(n) == a {
			return fmt.Sprintf("n%d", n)
		}
	}
	return a.String()
}
