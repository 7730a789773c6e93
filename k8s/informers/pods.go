// SPDX-License-Identifier: Apache-2.0

package informers

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
)

// pods makes the line to the Pods. They are many in a large cluster, and matter as backends only: they are read where an object can be
// that chooses some.
func (s *Source) pods(keeper Keeper, wantedBy ...schema.GroupVersionResource) publisher {
	pod := kind[world.Pod]{world.KindPod,
		func(w *world.World) *[]*world.Pod { return &w.Pods }, func(v *world.Pod) *world.Meta { return &v.Meta }}
	l := s.newLine(pod.name, "pods")
	l.wantedBy = wantedBy
	l.ask = ofKind(s.api.Client.CoreV1().Pods("")).byName(s.api.Dynamic, corev1.SchemeGroupVersion.WithResource("pods"))
	pods := pod.shelf(l, typed(pod, convert.Pod))
	pods.mind(keeper)
	return pod.rack(pods)
}
