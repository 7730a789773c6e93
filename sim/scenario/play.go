// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/balancer"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/workload"
)

// Play plans a scenario, which is valid, on a stage that is what it asks for (see Scenario.Stage). Call it before the
// world runs. It gives the cluster, which knows who lives.
func Play(on *stage.Stage, s Scenario) *workload.Cluster {
	w := on.World
	var cgroup func(node, pod, uid string, there bool)
	if s.Sockets.Policies {
		cgroup = func(node, pod, uid string, there bool) { on.Kernel(node).Pod(pod, uid, there) }
	}
	if s.Clients > 0 {
		w.At(Raised, func() { on.Group().Operator().Watch(statusEvery) })
	}
	cluster := workload.New(workload.Options{
		World: w, Kube: on.Kube, Network: on.Network, Nodes: on.Nodes(), Operator: operator{on}, Backends: backends(on, s), Outside: s.drivers(), Inherit: inherit(on), Disinherit: disinherit(on),
		Segments: s.Segments, Block: s.Aggregate > 0, Probed: s.Sockets.Probes, DualStack: s.Sockets.Policies, Cgroup: cgroup,
	})
	for i := range s.Clients {
		w.At(Raised, func() { on.Group().Register(fmt.Sprint("register-", i+1), registers, registerEvery) })
	}
	w.At(min(Raised, s.Duration/10), func() { cluster.Begin(s.Services) })
	for _, step := range s.Work {
		w.At(step.At, func() { cluster.Do(step) })
	}
	behind := fault.New(on)
	left := len(s.Faults)
	calm := func() { w.At(s.Calm(), func() { w.Publish(event.Calm{}) }) } // after all else that happens then
	if left == 0 {
		calm()
	}
	for _, f := range s.Faults {
		w.At(f.At, func() {
			end, err := behind.Begin(f)
			if err != nil {
				w.Fail(err)
				return
			}
			w.At(f.End(), func() {
				end()
				if left--; left == 0 {
					calm()
				}
			})
		})
	}
	return cluster
}

// What clients read and write, and how often.
var registers = []string{"x", "y", "z"}

// statusEvery is how often an operator asks how the group is doing.
const statusEvery = 2 * time.Second

const registerEvery = 400 * time.Millisecond

// backends brings outside load balancers into the record, where there are any.
func backends(on *stage.Stage, s Scenario) workload.Backends {
	if s.Balancers == 0 {
		return nil
	}
	return balancer.NewWorkload(on.World, on.Group().NewHand("planner"), on.Record, on.Balancers()[:s.Balancers])
}

// inherit has another controller put backends on balancers.
func inherit(on *stage.Stage) func(balancer, address string) {
	return func(name, address string) {
		for _, d := range on.Balancers() {
			d.Inherit(name, address)
		}
	}
}

// disinherit has it take such backends off.
func disinherit(on *stage.Stage) func(balancer, address string) {
	return func(name, address string) {
		for _, d := range on.Balancers() {
			d.Disinherit(name, address)
		}
	}
}

// operator tells the group what the steps of users ask of one.
type operator struct{ *stage.Stage }

// Release implements workload.Operator.
func (o operator) Release() {
	record := o.Record()
	if record == nil {
		return
	}
	for _, h := range fsm.List[*fsm.Hold](record, fsm.TableHolds) {
		if node, keeps := strings.CutPrefix(string(h.ID), "l2-"); keeps && o.Running(node) {
			continue // nobody can say yet that the node does not answer any more
		}
		if !h.Released {
			o.Group().Operator().ReleaseHold(string(h.ID), "simulated", nil)
		}
	}
}

// Move implements workload.Operator.
func (o operator) Move(service, node string) { o.Group().Operator().MoveService(service, node, nil) }

// SetAside implements workload.Operator.
func (o operator) SetAside(node string, yes bool) { o.Group().Operator().DrainNode(node, !yes, nil) }
