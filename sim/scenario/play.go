// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/fault"
	"fairlead.io/fairlead/sim/stage"
	"fairlead.io/fairlead/sim/workload"
)

// Play plans a scenario, which is valid, on a stage that is what it asks for (see Scenario.Stage). Call it before the
// world runs. It gives the cluster, which knows who lives.
func Play(on *stage.Stage, s Scenario) *workload.Cluster {
	w := on.World
	cluster := workload.New(workload.Options{World: w, Kube: on.Kube, Network: on.Network, Nodes: on.Nodes()})
	w.At(min(Raised, s.Duration/10), func() { cluster.Begin(s.Services) })
	for _, step := range s.Work {
		w.At(step.At, func() { cluster.Do(step) })
	}
	behind := fault.New(on)
	left := len(s.Faults)
	if left == 0 {
		w.At(s.Calm(), func() { w.Publish(event.Calm{}) })
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
					w.Publish(event.Calm{})
				}
			})
		})
	}
	return cluster
}
