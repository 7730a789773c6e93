// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

// The labels of pods.
const (
	appLabel      = "app"
	revisionLabel = "revision"
)

// application is what a Deployment and its ReplicaSets are: so many pods of the newest revision.
type application struct {
	name     string
	replicas int
	revision int
	made     int // pods so far
	expected bool
}

func replicas() parameter.Parameter {
	return parameter.Number("replicas", "pods of its application, 2 without it", 0, 100)
}

func applicationVerbs() []Verb {
	return []Verb{
		{
			Name: "scale", Text: "change how many pods an application has", Weight: 10,
			Parameters: []parameter.Parameter{name(), replicas()},
			Do:         func(c *Cluster, s Step) { c.scale(s.With["name"], s.With.Number("replicas", 2)) },
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("name", p.anyApplication(d))
				s.With.Set("replicas", d.From("replicas", 0, 6))
			},
		},
		{
			Name: "roll", Text: "roll an application out anew, a pod at a time", Weight: 8,
			Parameters: []parameter.Parameter{name()}, Draw: drawApplication,
			Do: func(c *Cluster, s Step) {
				if a := c.apps[s.With["name"]]; a != nil {
					a.revision++
					c.expect(a.name)
				}
			},
		},
		{
			Name: "evict", Text: "end a pod of an application; another one takes its place", Weight: 8,
			Parameters: []parameter.Parameter{name()}, Draw: drawApplication,
			Do: func(c *Cluster, s Step) {
				if all := c.podsOf(s.With["name"]); len(all) > 0 {
					c.end(all[0])
				}
			},
		},
		{
			Name: "ail", Text: "have a pod of an application not be ready for a while", Weight: 8,
			Parameters: []parameter.Parameter{name(), parameter.Duration("for", "2s without it")},
			Do: func(c *Cluster, s Step) {
				if all := c.podsOf(s.With["name"]); len(all) > 0 {
					c.ail(all[len(all)-1].Name, s.With.Duration("for", 2*time.Second))
				}
			},
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("name", p.anyApplication(d))
				s.With.Set("for", d.Time("for", 500*time.Millisecond, 5*time.Second))
			},
		},
	}
}

// scale makes an application have so many pods.
func (c *Cluster) scale(name string, replicas int) {
	a := c.apps[name]
	if a == nil {
		a = &application{name: name, revision: 1}
		c.apps[name] = a
	}
	a.replicas = replicas
	c.expect(name)
}

// expect has the controller of an application look at it soon.
func (c *Cluster) expect(name string) {
	a := c.apps[name]
	if a == nil || a.expected {
		return
	}
	a.expected = true
	c.world.After(seen, func() {
		a.expected = false
		c.control(a)
	})
}

// control takes an application a step further.
func (c *Cluster) control(a *application) {
	var old, current []*corev1.Pod
	serving := 0
	for _, p := range c.podsOf(a.name) {
		if p.Labels[revisionLabel] == fmt.Sprint(a.revision) {
			current = append(current, p)
		} else {
			old = append(old, p)
		}
		if ready(p) {
			serving++
		}
	}
	for len(current) > a.replicas {
		c.end(current[len(current)-1])
		current = current[:len(current)-1]
	}
	for len(current) < a.replicas && len(current)+len(old) <= a.replicas { // one more than wanted
		p := c.make(a)
		if p == nil {
			return // no node takes it: the next change of a node brings us back
		}
		current = append(current, p)
	}
	for _, p := range old {
		if ready(p) && serving <= a.replicas && a.replicas > 0 {
			continue // there are no others yet
		}
		c.end(p)
		if ready(p) {
			serving--
		}
	}
}

// podsOf lists the pods of an application that are not told to end, in order of their names.
func (c *Cluster) podsOf(app string) (out []*corev1.Pod) {
	for _, o := range c.kube.List("Pod") {
		if p := o.(*corev1.Pod); p.Labels[appLabel] == app && p.DeletionTimestamp == nil {
			out = append(out, p)
		}
	}
	return out
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(x corev1.PodCondition) bool {
		return x.Type == corev1.PodReady && x.Status == corev1.ConditionTrue
	})
}

// make makes a pod on the node that has the fewest.
func (c *Cluster) make(a *application) *corev1.Pod {
	load := map[string]int{}
	for _, o := range c.kube.List("Pod") {
		load[o.(*corev1.Pod).Spec.NodeName]++
	}
	for _, p := range c.podsOf(a.name) {
		load[p.Spec.NodeName] += 100 // spread an application first
	}
	var nodes []string
	for _, o := range c.kube.List("Node") {
		if n := o.(*corev1.Node); !n.Spec.Unschedulable && nodeReady(n) && slices.Contains(c.o.Nodes, n.Name) {
			nodes = append(nodes, n.Name)
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	node := slices.MinFunc(nodes, func(x, y string) int { return cmp.Compare(load[x], load[y]) })
	a.made++
	p := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: fmt.Sprintf("%s-%04d", a.name, a.made),
			Labels: map[string]string{appLabel: a.name, revisionLabel: fmt.Sprint(a.revision)},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if c.o.Cgroup != nil && a.made%3 == 0 {
		c.mirror(p)
	}
	o, err := c.kube.Create("controller", p)
	if c.may(err); err != nil {
		return nil
	}
	return o.(*corev1.Pod)
}

// configHash is the annotation that kubelets write the UID of a static pod in.
const configHash = "kubernetes.io/config.hash"

// mirror makes a pod one that its node has of itself, which the object is but a mirror of: its kubelet knows it by another UID.
func (c *Cluster) mirror(p *corev1.Pod) {
	node := c.kube.Get("Node", "", p.Spec.NodeName)
	hash := fmt.Sprintf("static-%s", p.Name)
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: hash, configHash: hash}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.GetName(), UID: node.GetUID()}}
}

// end tells a pod to end.
func (c *Cluster) end(p *corev1.Pod) {
	c.may(c.kube.Terminate("controller", p.Namespace, p.Name, grace))
}
