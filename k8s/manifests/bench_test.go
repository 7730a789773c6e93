// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/heap"
)

// 5,000 Services with their slices, one document each, in one file: what a reading costs when the file changed, and
// when nothing did.
func BenchmarkFiveThousandServices(b *testing.B) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "---\n%s---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s%d-1, labels: {kubernetes.io/service-name: s%d}}\naddressType: IPv4\nports: [{port: 80}]\nendpoints:\n- {addresses: [10.1.%d.%d], nodeName: node-a}\n- {addresses: [10.2.%d.%d], nodeName: node-b}\n",
			service(fmt.Sprintf("s%d", i), fmt.Sprintf("externalIPs: [198.18.%d.%d]", i/250, i%250)), i, i, i/250, i%250, i/250, i%250)
	}
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			s := newBench()
			s.write("all.yaml", text.String())
			s.pass(time.Second)
			if n := len(s.source.World().Services); n != 5000 {
				b.Fatal(n)
			}
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		s := newBench()
		s.write("all.yaml", text.String())
		s.pass(3 * time.Second)
		for b.Loop() {
			s.source.scan()
		}
	})
}

// What a folder at rest keeps of each Service with a slice of four endpoints: 5,000 of them on 100 nodes, in files of 100.
func BenchmarkKept(b *testing.B) {
	const services, perFile = 5000, 100
	written := newBench()
	for file := range services / perFile {
		var text strings.Builder
		for i := range perFile {
			withSlice(&text, file*perFile+i)
		}
		written.write(fmt.Sprintf("services-%02d.yaml", file), text.String())
	}
	for b.Loop() {
		before := heap.InUse()
		s := newBench()
		s.disk.files = written.disk.files
		s.pass(3 * time.Second)
		if w := s.source.World(); len(w.Services) != services || len(w.EndpointSlices) != services {
			b.Fatal(len(w.Services), len(w.EndpointSlices), w.Problems)
		}
		b.ReportMetric(float64(heap.InUse()-before)/services, "B/Service")
		runtime.KeepAlive(s)
	}
}

// withSlice writes the manifests of a Service and of its slice.
func withSlice(text *strings.Builder, i int) {
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
	for e := range 4 {
		fmt.Fprintf(text, "- {addresses: [10.%d.%d.%d], nodeName: node-%03d, conditions: {ready: true}}\n", e, i/250, i%250, (i+e*31)%100)
	}
	text.WriteString("---\n")
}
