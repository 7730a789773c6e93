// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kube"
)

// How long things take in a cluster.
const (
	podStarts  = time.Second            // from its node to being ready
	podLingers = 3 * time.Second        // that it goes on serving once it is told to end
	grace      = 30 * time.Second       // that it might
	nodeBoots  = 500 * time.Millisecond // from power to a kubelet that has told what runs no more
	nodeLost   = 40 * time.Second       // until Kubernetes takes a node that says nothing for lost
)

// life is the kubelets and controllers of one world, for the pods behind the announced Services. What they cannot tell
// the API server while that is away, they tell it afterwards.
type life struct {
	world *engine.World
	kube  *kube.Server
	plan  *plan

	pods   []*living
	dark   map[string]bool
	deaths map[string]int
	last   map[string]int // addresses given on a node
	away   bool
	late   []func() // what waits for the API server
}

// living is a pod in a world. It serves if it is up; ready is what it says of itself.
type living struct {
	*pod
	up    bool
	ended bool
}

func newLife(w *engine.World, server *kube.Server, p *plan) *life {
	l := &life{world: w, kube: server, plan: p, dark: map[string]bool{}, deaths: map[string]int{}, last: map[string]int{}}
	for _, x := range p.pods {
		l.pods = append(l.pods, &living{pod: x, up: x.ready})
	}
	w.Hear(func(e event.Stamped) {
		switch x := e.Event.(type) {
		case event.MachineDown:
			l.died(x.Machine)
		case event.MachineUp:
			l.booted(x.Machine)
		}
	})
	return l
}

// serves tells whether a pod answers now, whatever the API server has heard. What is no pod of ours does.
func (l *life) serves(id string, at netip.Addr) bool {
	for _, x := range l.pods {
		if x.id() == id && slices.Contains(x.addresses, at) {
			return x.up && !x.ended && !l.dark[x.node]
		}
	}
	return !slices.ContainsFunc(l.pods, func(x *living) bool { return x.id() == id })
}

// tell does something at the API server, now or when it is back.
func (l *life) tell(do func() error) {
	if l.away {
		l.late = append(l.late, func() { l.tell(do) })
		return
	}
	if err := do(); err != nil && !apierrors.IsNotFound(err) {
		l.world.Fail(fmt.Errorf("what kubelets and controllers tell the API server: %w", err))
	}
}

// setAway says whether the API server is away.
func (l *life) setAway(yes bool) {
	if l.away = yes; yes {
		return
	}
	late := l.late
	l.late = nil
	for _, do := range late {
		l.world.After(kubeletRetries, do)
	}
}

const kubeletRetries = 500 * time.Millisecond

// report writes how a pod is.
func (l *life) report(x *living) {
	l.tell(func() error {
		if x.ended {
			return nil
		}
		_, err := l.kube.ChangeStatus("kubelet", "Pod", x.namespace, x.name, func(o kube.Object) {
			now := x.object()
			now.Status.Conditions[0].Status = status(x.up)
			o.(*corev1.Pod).Status = now.Status
		})
		return err
	})
}

// fail has a pod answer no more, without anybody ending it, and recover has it answer again.
func (l *life) fail(x *living) {
	x.up = false
	l.world.After(kubeletRetries, func() { l.report(x) })
}

func (l *life) recover(x *living) {
	x.up = true
	l.report(x)
}

// move ends a pod and starts one in its place on another node, if there is one. It gives where.
func (l *life) move(x *living) string {
	to := l.elsewhere(x)
	next := *x.pod
	next.name, next.node = x.name+"-moved", to
	l.last[to]++
	// Addresses above those of the beginning.
	next.addresses = podAddresses(slices.Index(l.plan.cast.Nodes, to), 1000+l.last[to])
	l.tell(func() error { return l.kube.Terminate("controller", x.namespace, x.name, grace) })
	l.world.After(podLingers, func() {
		x.ended = true
		l.tell(func() error { return l.kube.Delete("kubelet", "Pod", x.namespace, x.name) })
	})
	y := &living{pod: &next}
	l.pods = append(l.pods, y)
	l.tell(func() error {
		o := y.object()
		o.Status = corev1.PodStatus{Phase: corev1.PodPending}
		_, err := l.kube.Create("controller", o)
		return err
	})
	l.world.After(podStarts, func() { l.recover(y) })
	return to
}

// elsewhere is another node with power for a pod: the one with the fewest pods; its own if there is no other.
func (l *life) elsewhere(x *living) string {
	load := map[string]int{}
	for _, y := range l.pods {
		if load[y.node]++; y.namespace == x.namespace && selectsSame(l.plan, x.pod, y.pod) {
			load[y.node] += 100
		}
	}
	var able []string
	for _, n := range l.plan.nodes {
		if n.Name != x.node && !l.dark[n.Name] && !n.Spec.Unschedulable {
			able = append(able, n.Name)
		}
	}
	if len(able) == 0 {
		return x.node
	}
	return slices.MinFunc(able, func(a, b string) int { return cmp.Compare(load[a], load[b]) })
}

// selectsSame tells whether a Service selects both pods.
func selectsSame(p *plan, a, b *pod) bool {
	return slices.ContainsFunc(p.services, func(s *corev1.Service) bool {
		return selects(s, a.namespace, a.labels) && selects(s, b.namespace, b.labels)
	})
}

// of is the first pod of a Service that serves, nil if none does.
func (l *life) of(s *corev1.Service) *living {
	for _, x := range l.pods {
		if selects(s, x.namespace, x.labels) && x.up && !x.ended && !l.dark[x.node] {
			return x
		}
	}
	return nil
}

// died is a node that lost its power.
func (l *life) died(node string) {
	if !slices.Contains(l.plan.cast.Nodes, node) {
		return
	}
	l.dark[node] = true
	l.deaths[node]++
	nth := l.deaths[node]
	l.world.After(nodeLost, func() {
		if !l.dark[node] || l.deaths[node] != nth {
			return
		}
		l.condition(node, corev1.ConditionUnknown)
		for _, x := range l.pods {
			if x.node == node && !x.ended {
				x.up = false
				l.report(x)
			}
		}
	})
}

// booted is a node whose kubelet comes back after a while, and with it its pods.
func (l *life) booted(node string) {
	nth := l.deaths[node]
	l.world.After(nodeBoots, func() {
		if !l.dark[node] || l.deaths[node] != nth {
			return
		}
		delete(l.dark, node)
		l.condition(node, corev1.ConditionTrue)
		for _, x := range l.pods {
			if x.node == node && !x.ended && x.ready {
				x.up = false
				l.report(x)
				l.world.After(podStarts, func() { l.recover(x) })
			}
		}
	})
}

func (l *life) condition(node string, ready corev1.ConditionStatus) {
	l.tell(func() error {
		_, err := l.kube.ChangeStatus("kubelet", "Node", "", node, func(o kube.Object) {
			n := o.(*corev1.Node)
			others := slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
			n.Status.Conditions = append(others, corev1.NodeCondition{Type: corev1.NodeReady, Status: ready})
		})
		return err
	})
}
