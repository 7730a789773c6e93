// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/sim/guest/start"
	"fairlead.io/fairlead/sim/kube"
)

// How long things take on nodes.
const (
	starts  = 600 * time.Millisecond // until a pod runs, on average
	probed  = 400 * time.Millisecond // until it is found to be ready, on average
	grace   = 30 * time.Second       // that it is given to end
	lingers = 3 * time.Second        // that it really takes, on average
	boots   = 2 * time.Second        // from power to kubelet
	lost    = 40 * time.Second       // until a node that says nothing is taken for lost
	retries = 250 * time.Millisecond // of a kubelet that does not reach the API server
)

// pod is what runs on a node for a Pod.
type pod struct {
	name, node string
	uid        types.UID
	own        string // the UID that its kubelet knows it by
	address    string
	other      string // its address of the other family, empty for none
	random     *rand.Rand
	running    bool
	serves     bool // it answers
	ending     bool
	told       bool           // that it serves, or not, stands in the API server
	deaf       map[string]int // by how many steps it takes no connections at a port, or at any: see listen
	listens    []string       // the ports where it does
}

// Alive tells whether a pod, as "namespace/name", lives and serves now: the truth, whatever the API server has heard.
func (c *Cluster) Alive(id string) bool {
	namespace, name, _ := strings.Cut(id, "/")
	p := c.pods[name]
	return namespace == Namespace && p != nil && p.serves && !c.dark[p.node]
}

// look has the kubelet of a Pod bring what runs to what is asked for.
func (c *Cluster) look(name string) {
	o, _ := c.kube.Get("Pod", Namespace, name).(*corev1.Pod)
	p := c.pods[name]
	if p != nil && (o == nil || o.UID != p.uid) {
		c.drop(p) // killed, as nobody wants it any more
		p = nil
	}
	switch {
	case o == nil || c.dark[o.Spec.NodeName]:
	case p == nil && o.DeletionTimestamp != nil:
		c.gone(o)
	case p == nil:
		c.start(o)
	case o.DeletionTimestamp != nil && !p.ending:
		p.ending = true
		c.later(p, lingers, func() {
			c.drop(p)
			c.gone(o)
		})
	case p.told && !p.agrees(o):
		c.tell(p) // somebody else wrote it, such as a backup
	}
}

// agrees tells whether the API server has it that a pod is as it is.
func (p *pod) agrees(o *corev1.Pod) bool {
	return ready(o) == p.serves && (!p.running || o.Status.PodIP == p.address)
}

// later does something to a pod after a while, if that still runs.
func (c *Cluster) later(p *pod, mean time.Duration, do func()) {
	c.world.After(mean/4+time.Duration(p.random.ExpFloat64()*float64(mean)*3/4), func() {
		if c.pods[p.name] == p && !c.dark[p.node] {
			do()
		}
	})
}

// start begins a pod's life. One that the API server takes for running, since the node has booted or a backup was
// restored, is told not to be ready first.
func (c *Cluster) start(o *corev1.Pod) {
	c.address++
	p := &pod{
		name: o.Name, node: o.Spec.NodeName, uid: o.UID, address: fmt.Sprintf("10.244.%d.%d", c.address/250, c.address%250+1),
		deaf: map[string]int{}, random: c.world.Random(fmt.Sprintf("pod/%s/%d", o.Name, c.world.Now())),
	}
	if slices.Contains(backendApps, o.Labels[appLabel]) {
		p.address = c.lowest(p.node)
	}
	if c.o.DualStack && c.address%4 > 0 { // not every node has both families
		p.other = fmt.Sprintf("fd00:244::%x", c.address)
	}
	if p.own = o.Annotations[configHash]; p.own == "" {
		p.own = string(o.UID)
	}
	c.pods[p.name] = p
	c.cgroup(p, true)
	if ready(o) {
		c.tell(p)
	}
	c.later(p, starts, func() {
		p.running = true
		c.listen(p)
		c.tell(p)
		c.later(p, probed, func() {
			p.serves = true
			c.tell(p)
		})
	})
}

// drop is the end of a pod.
func (c *Cluster) drop(p *pod) {
	if c.pods[p.name] == p {
		delete(c.pods, p.name)
	}
	c.listen(p)
	c.cgroup(p, false)
}

// cgroup has a pod have a cgroup, or none any more.
func (c *Cluster) cgroup(p *pod, there bool) {
	if c.o.Cgroup != nil {
		c.o.Cgroup(p.node, Namespace+"/"+p.name, p.own, there)
	}
}

// ail has a pod not be ready for a while.
func (c *Cluster) ail(name string, d time.Duration) {
	p := c.pods[name]
	if p == nil || !p.serves {
		return
	}
	p.serves = false
	c.tell(p)
	c.world.After(d, func() {
		if c.pods[name] == p && p.running {
			p.serves = true
			c.tell(p)
		}
	})
}

// tell writes how a pod is, as soon as its kubelet reaches the API server.
func (c *Cluster) tell(p *pod) {
	p.told = false
	c.report(p)
}

func (c *Cluster) report(p *pod) {
	if p.told || c.pods[p.name] != p || c.dark[p.node] {
		return
	}
	if !c.reaches(p.node) {
		c.world.After(retries, func() { c.report(p) })
		return
	}
	p.told = true
	_, err := c.kube.ChangeStatus("kubelet", "Pod", Namespace, p.name, func(o kube.Object) {
		status := &o.(*corev1.Pod).Status
		status.Phase, status.PodIP, status.PodIPs = corev1.PodPending, "", nil
		if p.running {
			status.Phase, status.PodIP, status.PodIPs = corev1.PodRunning, p.address, []corev1.PodIP{{IP: p.address}}
			if p.other != "" {
				status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: p.other})
			}
		}
		status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: truth(p.serves)}}
	})
	c.may(err)
}

func truth(yes bool) corev1.ConditionStatus {
	if yes {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// gone tells the API server that a pod has ended.
func (c *Cluster) gone(o *corev1.Pod) {
	now, _ := c.kube.Get("Pod", Namespace, o.Name).(*corev1.Pod)
	switch {
	case now == nil || now.UID != o.UID || c.dark[o.Spec.NodeName]:
	case !c.reaches(o.Spec.NodeName):
		c.world.After(retries, func() { c.gone(o) })
	default:
		c.may(c.kube.Delete("kubelet", "Pod", Namespace, o.Name))
	}
}

// reaches tells whether a kubelet reaches the API server.
func (c *Cluster) reaches(node string) bool {
	n := c.o.Network
	return n == nil || n.Passes(node, start.Kubernetes) && n.Passes(start.Kubernetes, node)
}

// died is a node that lost its power, with all pods.
func (c *Cluster) died(node string) {
	c.dark[node] = true
	c.deaths[node]++
	nth := c.deaths[node]
	for _, name := range slices.Sorted(maps.Keys(c.pods)) {
		if p := c.pods[name]; p.node == node {
			delete(c.pods, name)
			c.world.After(0, func() { c.drop(p) })
		}
	}
	c.world.After(lost, func() {
		if c.dark[node] && c.deaths[node] == nth {
			c.unready(node)
		}
	})
}

// awaken boots a node, unless it dies again meanwhile.
func (c *Cluster) awaken(node string) {
	nth := c.deaths[node]
	c.world.After(boots, func() {
		if c.deaths[node] == nth {
			delete(c.dark, node)
			c.booted(node)
		}
	})
}

// booted is a kubelet, which starts what the API server has for it.
func (c *Cluster) booted(node string) {
	if c.kube.Get("Node", "", node) == nil {
		c.addNode(node)
	}
	c.nodeCondition(node, corev1.ConditionTrue)
	for _, o := range c.kube.List("Pod") {
		if o.(*corev1.Pod).Spec.NodeName == node {
			c.look(o.GetName())
		}
	}
}

// unready is what the controller of nodes does to one that it does not hear of.
func (c *Cluster) unready(node string) {
	c.nodeCondition(node, corev1.ConditionUnknown)
	for _, o := range c.kube.List("Pod") {
		if p := o.(*corev1.Pod); p.Spec.NodeName == node && ready(p) {
			_, err := c.kube.ChangeStatus("node-controller", "Pod", Namespace, p.Name, func(o kube.Object) {
				o.(*corev1.Pod).Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
			})
			c.may(err)
		}
	}
}
