// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kube"
	"fairlead.io/fairlead/sim/network"
	"fairlead.io/fairlead/sim/scenario/parameter"
	"fairlead.io/fairlead/sim/stage"
)

// Operator tells a group what only people can. What comes of it is not waited for.
type Operator interface {
	// Release releases what the group holds back.
	Release()
	// SetAside has new flows go past a node, or ends that.
	SetAside(node string, yes bool)
	// Move has the addresses of a Service lead to a node; where no node is named, where they would by themselves.
	Move(service, node string)
}

// Backends are what is bound to outside load balancers, such as a balancer.Workload.
type Backends interface {
	// Act has somebody change something of it, drawn at random.
	Act()
}

// Options are what a cluster is made of.
type Options struct {
	World    *engine.World
	Kube     *kube.Server
	Network  *network.Network // between kubelets and the API server; nil: nothing is ever in between
	Nodes    []string
	Operator Operator // nil: nobody is there
	Backends Backends // nil: there are none
	// Outside are the drivers that users know by objects, as package stage names them.
	Outside []string
	// Segments is how many there are that nodes are in.
	Segments int
	// Block tells whether there is one, all of whose addresses users ask for.
	Block bool
	// Probed tells whether endpoints may be probed: pods then take connections.
	Probed bool
	// DualStack has most pods have an address of either family.
	DualStack bool
	// Cgroup has a pod on a node have a cgroup, or none any more: by its name, and the UID that its kubelet knows it by. Nil: nobody asks, and no pod is
	// static.
	Cgroup func(node, pod, uid string, there bool)
	// Inherit has another controller have put a backend on one of their balancers; nil: there is no other.
	Inherit func(balancer, address string)
	// Disinherit has it have taken such a one off.
	Disinherit func(balancer, address string)
}

// Cluster is the users, controllers and kubelets of one world.
type Cluster struct {
	o     Options
	world *engine.World
	kube  *kube.Server

	apps    map[string]*application
	pods    map[string]*pod // that run, by name
	dark    map[string]bool // nodes without power, or kubelet
	deaths  map[string]int
	address int                     // the last one that a pod was given
	removed map[string]*corev1.Node // that are to come back
	rivals  int                     // how many want an LBCF controller to run
}

// New makes a cluster in which nothing was asked for yet. Call it before the world runs.
func New(o Options) *Cluster {
	c := &Cluster{
		o: o, world: o.World, kube: o.Kube, apps: map[string]*application{}, pods: map[string]*pod{}, dark: map[string]bool{},
		deaths: map[string]int{}, removed: map[string]*corev1.Node{},
	}
	o.World.Hear(func(e event.Stamped) { c.hear(e.Event) })
	return c
}

// hear takes in an event. What follows from it happens afterwards, as its own.
func (c *Cluster) hear(e event.Event) {
	switch x := e.(type) {
	case event.Object:
		c.collects(x)
		if x.Kind == "Pod" {
			c.world.After(seen, func() { c.look(x.Name) })
			c.expect(appOf(x.Name))
		}
		if x.Kind == "Node" {
			for _, name := range c.applications() {
				c.expect(name)
			}
		}
	case event.MachineDown:
		if slices.Contains(c.o.Nodes, x.Machine) {
			c.died(x.Machine)
		}
	case event.MachineUp:
		if slices.Contains(c.o.Nodes, x.Machine) {
			c.awaken(x.Machine)
		}
	}
}

// seen is how long controllers and kubelets take to notice a change.
const seen = 20 * time.Millisecond

// Begin brings in the Services that there are from the beginning.
func (c *Cluster) Begin(services int) {
	for i := range services {
		s := Step{Do: "create", With: parameter.Values{"name": first(i), "replicas": fmt.Sprint(1 + i%3)}}
		switch i % 6 {
		case 1:
			s.With["policy"] = "Local"
		case 2:
			s.With["ports"] = "80,443"
		case 3:
			s.With["address"] = fmt.Sprint("203.0.113.", 100+i%100)
		case 4:
			s.With["affinity"], s.With["clients"] = "ClientIP", "198.51.100.0/24"
		case 5:
			s.With["ports"] = "53/UDP"
		}
		if n := c.o.Segments; n > 0 && i%3 > 0 {
			s.With["address"] = inSegment(i/3%n, i).String()
		}
		c.Do(s)
	}
	if c.o.Block {
		for i := range stage.BlockSize {
			c.createInBlock(i)
		}
	}
	c.beginOutside()
}

// Do takes a step, which was checked.
func (c *Cluster) Do(s Step) {
	v, ok := Find(s.Do)
	if !ok {
		c.world.Fail(fmt.Errorf("step %s: unknown", s.Do))
		return
	}
	v.Do(c, s)
}

// may ends the run unless the API server took what it was asked, or had nothing to do it to.
func (c *Cluster) may(err error) {
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
		c.world.Fail(fmt.Errorf("a step of the workload, at the API server: %w", err))
	}
}

// applications lists the names of all applications.
func (c *Cluster) applications() []string { return slices.Sorted(maps.Keys(c.apps)) }

// appOf is the application of a pod.
func appOf(pod string) string {
	i := strings.LastIndexByte(pod, '-')
	return pod[:max(i, 0)]
}
