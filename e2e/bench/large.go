// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"strings"

	"fairlead.io/fairlead/e2e/lab"
)

// The large cluster: Services that ask for an address of a pool, each with as many endpoints, all on nodes of their own.
const (
	largeServices  = 50_000
	largeEndpoints = 4 // of each Service
	largeNodes     = 100
)

// largeNode is the name and the address of a node of the large cluster, from 0.
func largeNode(n int) (string, netip.Addr) {
	return fmt.Sprintf("node-%03d", n), netip.AddrFrom4([4]byte{192, 0, byte(3 + (n+1)>>8), byte(n + 1)})
}

// largeEndpoint is the address of an endpoint of Service i, and the node that it runs on.
func largeEndpoint(i, e int) (netip.Addr, int) {
	return netip.AddrFrom4([4]byte{10, byte(e<<1 | i>>16), byte(i >> 8), byte(i)}), (i + e*31) % largeNodes
}

const largePool = `apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: large, namespace: metallb-system}
spec: {addresses: [198.18.0.0/15]}
`

// putLarge writes the first so many Services of the large cluster, its nodes and its pool as manifests.
func putLarge(m *lab.Manifests, services int) {
	m.Put("pool.yaml", largePool)
	putNodes(m, largeNodes)
	putServices(m, services)
}

// putServices writes the first so many Services of the large cluster as manifests.
func putServices(m *lab.Manifests, services int) {
	var text strings.Builder
	const perFile = 100
	for i := range services {
		largeManifest(&text, i)
		if (i+1)%perFile == 0 || i+1 == services {
			m.Put(fmt.Sprintf("services-%03d.yaml", i/perFile), text.String())
			text.Reset()
		}
	}
}

// putNodes writes the first so many nodes as a manifest.
func putNodes(m *lab.Manifests, nodes int) {
	var text strings.Builder
	for n := range nodes {
		name, address := largeNode(n)
		fmt.Fprintf(&text, `apiVersion: v1
kind: Node
metadata: {name: %s}
status:
  addresses: [{type: InternalIP, address: %s}]
  conditions: [{type: Ready, status: "True"}]
---
`, name, address)
	}
	m.Put("nodes.yaml", text.String())
}

func largeManifest(text *strings.Builder, i int) {
	fmt.Fprintf(text, `apiVersion: v1
kind: Service
metadata: {name: svc-%[1]d, namespace: default}
spec:
  type: LoadBalancer
  ports: [{name: http, port: 80, protocol: TCP}]
  selector: {app: svc-%[1]d}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: svc-%[1]d-1, namespace: default, labels: {kubernetes.io/service-name: svc-%[1]d}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
`, i)
	for e := range largeEndpoints {
		address, node := largeEndpoint(i, e)
		name, _ := largeNode(node)
		fmt.Fprintf(text, "- {addresses: [\"%s\"], nodeName: %s, conditions: {ready: true}}\n", address, name)
	}
	text.WriteString("---\n")
}

// largeRoutes is how many paths to the large cluster the switch has from all members.
func largeRoutes(l *lab.Lab) int { return largeServices * largeEndpoints * len(l.Members) }

func everyRoute(l *lab.Lab) error {
	if routes, networks := countRoutes(l.Bird.Command("show route count")); networks != largeServices || routes != largeRoutes(l) {
		return fmt.Errorf("%d routes for %d networks, want %d for %d", routes, networks, largeRoutes(l), largeServices)
	}
	return nil
}
