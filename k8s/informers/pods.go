// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"sync"

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
	pods := pod.shelf(l, typed(pod, slim(convert.Pod)))
	pods.mind(keeper)
	return pod.rack(pods)
}

// slim has pods share their labels and the names of their nodes: nearly all pods have what another has.
func slim(turn func(*corev1.Pod) (world.Pod, []world.Problem)) func(*corev1.Pod) (world.Pod, []world.Problem) {
	texts := &interner{known: map[string]string{}}
	return func(o *corev1.Pod) (world.Pod, []world.Problem) {
		p, problems := turn(o)
		texts.mu.Lock()
		defer texts.mu.Unlock()
		p.Namespace, p.Node = texts.one(p.Namespace), texts.one(p.Node)
		for i := range p.Labels {
			p.Labels[i] = world.KV{Key: texts.one(p.Labels[i].Key), Value: texts.one(p.Labels[i].Value)}
		}
		return p, problems
	}
}

// interner gives the same memory for the same text, as long as it knows it.
type interner struct {
	mu    sync.Mutex
	known map[string]string
}

// maxTexts bounds what an interner holds of pods that are long gone.
const maxTexts = 50_000

func (i *interner) one(text string) string {
	if same, ok := i.known[text]; ok {
		return same
	}
	if len(i.known) >= maxTexts {
		clear(i.known)
	}
	i.known[text] = text
	return text
}
