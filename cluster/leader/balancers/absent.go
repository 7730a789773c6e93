// SPDX-License-Identifier: Apache-2.0

package balancers

import "fairlead.io/fairlead/fsm/world"

// Absent is a pod that an owner means and that cannot be registered now.
type Absent struct {
	Pod  world.ID
	Code string // one of those below
}

// Codes of absent pods.
const (
	PodMissing   = "pod-missing"    // it is named, and no source shows it
	PodDeleting  = "pod-deleting"   // it is being deleted
	PodNoAddress = "pod-no-address" // it has no IP address yet
	PodNotReady  = "pod-not-ready"  // its condition Ready is not true
)

// Absentees lists the pods of a group or a Bind that cannot be registered now, named ones first, in the order in which they are named. Those that its
// policy keeps are among them.
func Absentees(in Input, kind world.Kind, id world.ID) []Absent {
	p := newPlanner(in, new(Index))
	p.gatherOwners()
	for _, o := range p.owners {
		if o.kind != kind || o.meta.ID != id || o.balancing.Pods == nil {
			continue
		}
		p.owners = []*owner{o}
		p.pods = p.indexPods()
		return p.absent(o)
	}
	return nil
}

func (p *planner) absent(o *owner) (out []Absent) {
	if s := o.balancing.Pods; !s.ByLabel {
		for _, name := range s.Names {
			if p.pod(o.meta.Namespace, name) == nil {
				out = append(out, Absent{world.ID{Namespace: o.meta.Namespace, Name: name}, PodMissing})
			}
		}
	}
	for _, pod := range p.candidates(o) {
		switch {
		case pod.Deleting:
			out = append(out, Absent{pod.ID, PodDeleting})
		case pod.IP == "":
			out = append(out, Absent{pod.ID, PodNoAddress})
		case !pod.Ready:
			out = append(out, Absent{pod.ID, PodNotReady})
		}
	}
	return out
}
