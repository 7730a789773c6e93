// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel/message"
)

// cgroups are those of the pods on a node, and what programs at sockets are told of them.
type cgroups struct {
	last   uint64
	pods   map[string]podCgroup // by the UID that its kubelet knows a pod by
	spared map[message.Own]bool
	told   event.Spares // as published last
}

type podCgroup struct {
	pod    string // "namespace/name"
	cgroup uint64
}

// Pod has a pod have a cgroup of its own from now on, or none any more: by its name, and the UID that its kubelet knows it by. None outlives a boot.
func (k *Kernel) Pod(name, uid string, there bool) {
	if !k.up {
		return
	}
	if there {
		k.cgroups.last++
		k.cgroups.pods[uid] = podCgroup{name, k.cgroups.last}
	} else {
		delete(k.cgroups.pods, uid)
	}
	k.publishSpares()
}

// find gives the cgroups of pods that have one.
func (c *cgroups) find(uids []string) map[string]uint64 {
	out := map[string]uint64{}
	for _, uid := range uids {
		if p, there := c.pods[uid]; there {
			out[uid] = p.cgroup
		}
	}
	return out
}

// spare has programs leave the sockets of some cgroups alone, and of no others.
func (k *Kernel) spare(own []message.Own) {
	k.cgroups.spared = map[message.Own]bool{}
	for _, o := range own {
		k.cgroups.spared[o] = true
	}
	k.publishSpares()
}

// publishSpares tells which pods there are, and which of them programs leave alone, if that has changed.
func (k *Kernel) publishSpares() {
	e := event.Spares{Node: k.o.Node, Boot: k.boot}
	for _, uid := range slices.Sorted(maps.Keys(k.cgroups.pods)) {
		p := k.cgroups.pods[uid]
		e.Pods = append(e.Pods, p.pod)
		for o := range k.cgroups.spared {
			if o.Cgroup == p.cgroup {
				e.Own = append(e.Own, fmt.Sprint(p.pod, " ", o.Rule))
			}
		}
	}
	slices.Sort(e.Pods)
	slices.Sort(e.Own)
	if !reflect.DeepEqual(e, k.cgroups.told) {
		k.cgroups.told = e
		k.world.Publish(e)
	}
}
