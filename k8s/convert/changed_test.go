// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// K52: a slice says when its cause was, and one that says nothing, or no time, does not.
// Rule: K52.
func TestSlicesSayWhenTheirCauseWas(t *testing.T) {
	for text, want := range map[string]int64{
		"2026-03-04T05:06:07.25Z": time.Date(2026, 3, 4, 5, 6, 7, 250_000_000, time.UTC).UnixMilli(), "": 0, "yesterday": 0,
	} {
		s, problems := EndpointSlice(&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"},
				Annotations: map[string]string{corev1.EndpointsLastChangeTriggerTime: text},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
		})
		if s.ChangedUnixMilli != want || len(problems) > 0 {
			t.Errorf("%q: changed at %d, %v", text, s.ChangedUnixMilli, problems)
		}
	}
}
