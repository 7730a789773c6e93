// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/scenario/dice"
	"fairlead.io/fairlead/sim/scenario/parameter"
)

func nodeVerbs() []Verb {
	parameters := []parameter.Parameter{parameter.Machines("node", "its name").Must(), parameter.Duration("for", "how long; 5s without it")}
	verb := func(name, text string, weight int, begin, end func(c *Cluster, node string)) Verb {
		return Verb{
			Name: name, Text: text, Weight: weight, Parameters: parameters,
			Draw: func(d dice.Dice, p Plan, s *Step) {
				s.With.Set("node", dice.Pick(d, "node", p.Nodes))
				s.With.Set("for", d.Time("for", time.Second, 10*time.Second))
			},
			Do: func(c *Cluster, s Step) {
				begin(c, s.With["node"])
				c.world.After(s.With.Duration("for", 5*time.Second), func() { end(c, s.With["node"]) })
			},
		}
	}
	return []Verb{
		verb("cordon", "have a node take no new pods for a while", 3,
			func(c *Cluster, node string) { c.cordon(node, true) }, func(c *Cluster, node string) { c.cordon(node, false) }),
		verb("drain", "end all pods of a node, and have it take no new ones for a while", 4,
			func(c *Cluster, node string) { c.cordon(node, true); c.drain(node) }, func(c *Cluster, node string) { c.cordon(node, false) }),
		verb("exclude", "exclude a node from load balancers for a while", 4,
			func(c *Cluster, node string) { c.exclude(node, true) }, func(c *Cluster, node string) { c.exclude(node, false) }),
		verb("unready", "have a node not be ready for a while", 4,
			func(c *Cluster, node string) { c.nodeCondition(node, corev1.ConditionFalse) },
			func(c *Cluster, node string) { c.nodeCondition(node, corev1.ConditionTrue) }),
		verb("remove-node", "delete a node with its pods; it comes back after a while as a new one", 3,
			(*Cluster).removeNode, (*Cluster).addNode),
	}
}

// excluded is the label of nodes that load balancers leave out.
const excluded = corev1.LabelNodeExcludeBalancers

func (c *Cluster) cordon(node string, yes bool) {
	_, err := c.kube.Change("user", "Node", "", node, func(o kube.Object) { o.(*corev1.Node).Spec.Unschedulable = yes })
	c.may(err)
}

func (c *Cluster) exclude(node string, yes bool) {
	_, err := c.kube.Change("user", "Node", "", node, func(o kube.Object) {
		if o.SetLabels(without(o.GetLabels(), excluded)); yes {
			o.SetLabels(with(o.GetLabels(), excluded, ""))
		}
	})
	c.may(err)
}

func (c *Cluster) drain(node string) {
	for _, o := range c.kube.List("Pod") {
		if p := o.(*corev1.Pod); p.Spec.NodeName == node && p.DeletionTimestamp == nil {
			c.end(p)
		}
	}
}

// nodeCondition writes whether a node is ready.
func (c *Cluster) nodeCondition(node string, ready corev1.ConditionStatus) {
	_, err := c.kube.ChangeStatus("kubelet", "Node", "", node, func(o kube.Object) {
		o.(*corev1.Node).Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	})
	c.may(err)
}

func nodeReady(n *corev1.Node) bool {
	for _, x := range n.Status.Conditions {
		if x.Type == corev1.NodeReady {
			return x.Status == corev1.ConditionTrue
		}
	}
	return false
}

// removeNode deletes a node, and soon after it what was on it.
func (c *Cluster) removeNode(node string) {
	o := c.kube.Get("Node", "", node)
	if o == nil {
		return
	}
	c.removed[node] = o.DeepCopyObject().(*corev1.Node)
	c.may(c.kube.Delete("user", "Node", "", node))
	c.world.After(collects, func() {
		for _, p := range c.kube.List("Pod") {
			if p.(*corev1.Pod).Spec.NodeName == node && c.kube.Get("Node", "", node) == nil {
				c.may(c.kube.Delete("pod-garbage-collector", "Pod", p.GetNamespace(), p.GetName()))
			}
		}
	})
}

// collects is how long it takes until the pods of a node that is not there are deleted.
const collects = time.Second

// addNode brings a node back, as new.
func (c *Cluster) addNode(node string) {
	old := c.removed[node]
	if old == nil || c.dark[node] {
		return // its kubelet will do it
	}
	delete(c.removed, node)
	n := &corev1.Node{TypeMeta: old.TypeMeta, Status: old.Status}
	n.Name, n.Labels = old.Name, without(old.Labels, excluded)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err := c.kube.Create("kubelet", n)
	c.may(err)
}
