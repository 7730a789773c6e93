// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// Known lists the objects that a policy of the record is there for, which a source may be asked about: its policy, and the Service,
// nodes and pods that it chose.
func Known(r *fsm.Policy, add func(kind world.Kind, id world.ID, uid string)) {
	kind, id := ObjectOf(r.ID)
	add(kind, id, r.UID)
	if namespace, name, ok := strings.Cut(string(r.Service), "/"); ok && len(r.Captures) > 0 {
		add(world.KindService, world.ID{Namespace: namespace, Name: name}, "")
	}
	for _, n := range r.Nodes {
		add(world.KindNode, world.ID{Name: string(n)}, "")
	}
	for _, one := range r.Proxied {
		add(world.KindPod, podID(one.Pod), one.UID)
		add(world.KindNode, world.ID{Name: string(one.Node)}, "")
	}
	for _, b := range r.Backends {
		if b.Pod == "" {
			continue
		}
		add(world.KindPod, podOf(b), b.UID)
		if r.Mode == string(world.ToHostPorts) {
			add(world.KindNode, world.ID{Name: string(b.Node)}, "")
		}
	}
}
