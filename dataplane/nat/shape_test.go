// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/internal/testkit"
)

// K52: how many endpoints Services have is one histogram, of the Services that there are now.
// Rule: K52.
func TestEndpointsPerService(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		registry := prometheus.NewPedanticRegistry()
		n, err := Over(Options{Node: "n1", Metrics: registry}, &strict{t: t, rules: newRuleset()})
		if err != nil {
			t.Fatal(err)
		}
		for _, counts := range [][]int{{7, 7}, {0, 1, 3, 3}} {
			var services []*desired.Service
			for i, many := range counts {
				services = append(services, &desired.Service{Name: "a/" + string(rune('a'+i)), Endpoints: make([]desired.Endpoint, many)})
			}
			if _, err := n.apply(t.Context(), "", services); err != nil {
				t.Fatal(err)
			}
		}
		want := `# HELP fairlead_nat_endpoints_per_service Services by how many endpoints they have now.
# TYPE fairlead_nat_endpoints_per_service histogram
fairlead_nat_endpoints_per_service_bucket{le="0"} 1
fairlead_nat_endpoints_per_service_bucket{le="1"} 2
fairlead_nat_endpoints_per_service_bucket{le="2"} 2
fairlead_nat_endpoints_per_service_bucket{le="5"} 4
fairlead_nat_endpoints_per_service_bucket{le="10"} 4
fairlead_nat_endpoints_per_service_bucket{le="20"} 4
fairlead_nat_endpoints_per_service_bucket{le="50"} 4
fairlead_nat_endpoints_per_service_bucket{le="100"} 4
fairlead_nat_endpoints_per_service_bucket{le="1000"} 4
fairlead_nat_endpoints_per_service_bucket{le="+Inf"} 4
fairlead_nat_endpoints_per_service_sum 7
fairlead_nat_endpoints_per_service_count 4
`
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "fairlead_nat_endpoints_per_service"); err != nil {
			t.Fatal(err)
		}
	})
}
