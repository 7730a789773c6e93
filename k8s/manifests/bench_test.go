// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"strings"
	"testing"
	"time"
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
