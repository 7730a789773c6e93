// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whatever a manifest says of its age: what is older than any cluster is of unknown age, and what is of a far future the youngest.
func TestAgeThatNoObjectHasIsNoOtherAge(t *testing.T) {
	for year, want := range map[int]uint32{1960: 0, 2000: 946_684_800, 2500: math.MaxUint32} {
		var o corev1.Namespace
		o.Name, o.CreationTimestamp = "a", metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
		if n, _ := Namespace(&o); n.Created != want {
			t.Errorf("of %d it is created at %d, want %d", year, n.Created, want)
		}
	}
}
