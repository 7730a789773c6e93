// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What has flows go past a node is taken from its object whole: the label whatever its value, the keys of taints whatever
// their effects.
func TestNodeTellsOfCordonTaintsAndLabel(t *testing.T) {
	for text, want := range map[string]struct {
		cordoned, excluded bool
		taints             []string
	}{
		`{metadata: {name: n}}`:                              {},
		`{metadata: {name: n}, spec: {unschedulable: true}}`: {cordoned: true},
		`{metadata: {name: n, labels: {node.kubernetes.io/exclude-from-external-load-balancers: "false"}}}`:            {excluded: true},
		`{metadata: {name: n}, spec: {taints: [{key: a, effect: NoSchedule}, {key: b, value: c, effect: NoExecute}]}}`: {taints: []string{"a", "b"}},
	} {
		n, problems := Node(read[corev1.Node](t, text))
		if len(problems) > 0 || n.Unschedulable != want.cordoned || n.Excluded != want.excluded || !slices.Equal(n.Taints, want.taints) {
			t.Errorf("%s: %+v, problems %v", text, n, problems)
		}
	}
}
