// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// selectors reads label selectors. Where one cannot be read its object is unusable: it would choose what nobody meant.
func (r *report) selectors(field string, list []metav1.LabelSelector) []world.Selector {
	out := make([]world.Selector, 0, len(list))
	for i := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if _, err := metav1.LabelSelectorAsSelector(&list[i]); err != nil {
			r.fail(at, "write matchLabels, or matchExpressions with In, NotIn, Exists or DoesNotExist", "no selector: %v", err)
			continue
		}
		one := world.Selector{Labels: kvs(list[i].MatchLabels, all)}
		for _, e := range list[i].MatchExpressions {
			one.Requirements = append(one.Requirements, world.Requirement{
				Key: e.Key, Operator: world.Operator(e.Operator), Values: slices.Clone(e.Values),
			})
		}
		out = append(out, one)
	}
	return out
}
