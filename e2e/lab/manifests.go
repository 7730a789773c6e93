// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Manifests is the folder that the group reads. Files are replaced at once, as editors and kubectl do.
type Manifests struct {
	t   testing.TB
	Dir string
}

func newManifests(t testing.TB, dir string) *Manifests {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return &Manifests{t: t, Dir: dir}
}

// Put writes one file.
func (m *Manifests) Put(name, text string) {
	m.t.Helper()
	tmp := filepath.Join(m.Dir, "."+name+".tmp")
	if err := os.WriteFile(tmp, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(m.Dir, name)); err != nil {
		m.t.Fatal(err)
	}
}

// Remove deletes one file.
func (m *Manifests) Remove(name string) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.Dir, name)); err != nil {
		m.t.Fatal(err)
	}
}

// Peer makes the switch known.
func (m *Manifests) Peer(name string, asn, peerASN uint32, address netip.Addr, port uint16) {
	m.Put("peer-"+name+".yaml", fmt.Sprintf(`apiVersion: metallb.io/v1beta2
kind: BGPPeer
metadata: {name: %s}
spec: {myASN: %d, peerASN: %d, peerAddress: %s, peerPort: %d}
`, name, asn, peerASN, address, port))
}

// NodeAddress is the address of node n, from 1.
func NodeAddress(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(100 + n)}) }

// Node writes node n, from 1.
func (m *Manifests) Node(n int, ready bool) {
	m.t.Helper()
	status := "True"
	if !ready {
		status = "False"
	}
	m.Put(fmt.Sprintf("node-%d.yaml", n), fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: n%d}
status:
  addresses: [{type: InternalIP, address: %s}]
  conditions: [{type: Ready, status: "%s"}]
`, n, NodeAddress(n), status))
}

// VIP is the address of service i, from 0.
func VIP(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{203, byte(i >> 16), byte(i >> 8), byte(i)})
}

// Service gives the manifest of service i with one ready pod on each of the nodes.
func Service(i int, nodes ...int) string {
	var endpoints strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&endpoints, "- {addresses: [\"10.%d.%d.%d\"], nodeName: n%d, conditions: {ready: true}}\n", n, i>>8&255, i&255, n)
	}
	if endpoints.Len() == 0 {
		endpoints.WriteString("[]\n")
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: svc-%d, namespace: default}
spec:
  type: LoadBalancer
  externalIPs: [%s]
  ports: [{name: http, port: 80, protocol: TCP}]
  selector: {app: svc-%d}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: svc-%d-1, namespace: default, labels: {kubernetes.io/service-name: svc-%d}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
%s`, i, VIP(i), i, i, i, endpoints.String())
}

// Service writes service i, from 0, with one ready pod on each of the nodes.
func (m *Manifests) Service(i int, nodes ...int) {
	m.t.Helper()
	m.Put(fmt.Sprintf("svc-%d.yaml", i), Service(i, nodes...))
}
