// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// outsideObjects are the objects that the record's drivers, load balancers and bindings are there for. What is on its way
// out is not asked about: that was decided.
type outsideObjects struct {
	list []KnownObject
	seen map[KnownObject]bool
	// owners are those that were added, as bindings spell them: many have the same.
	owners map[string]bool
}

func outsideOf(record *fsm.View) []KnownObject {
	bindings := fsm.List[*fsm.Binding](record, fsm.TableBindings)
	o := outsideObjects{list: make([]KnownObject, 0, len(bindings)), seen: make(map[KnownObject]bool, len(bindings)), owners: map[string]bool{}}
	for _, d := range fsm.List[*fsm.Driver](record, fsm.TableDrivers) {
		o.add(world.KindDriver, idOf(fsm.ServiceID(d.Name)), d.UID)
	}
	for _, l := range fsm.List[*fsm.LoadBalancer](record, fsm.TableBalancers) {
		if l.State != fsm.BalancerDeleting {
			o.named(string(l.ID))
		}
	}
	for _, b := range bindings {
		if b.State == fsm.BindingDraining || b.State == fsm.BindingDeregistering {
			continue
		}
		o.named(b.Owner)
		namespace, _, _ := strings.Cut(string(b.ID), "/")
		switch b.Backend.Kind {
		case "Pod":
			o.add(world.KindPod, world.ID{Namespace: namespace, Name: b.Backend.Name}, b.Backend.UID)
		case "Service":
			o.add(world.KindService, world.ID{Namespace: namespace, Name: b.Backend.Name}, "")
			o.add(world.KindNode, world.ID{Name: b.Backend.Node}, "")
		}
	}
	return o.list
}

func (o *outsideObjects) add(kind world.Kind, id world.ID, uid string) {
	k := KnownObject{kind, id, uid}
	if id.Name != "" && !o.seen[k] {
		o.seen[k] = true
		o.list = append(o.list, k)
	}
}

// named adds an object that is named "kind/namespace/name/uid", with more after it or not.
func (o *outsideObjects) named(text string) {
	if o.owners[text] {
		return
	}
	o.owners[text] = true
	if parts := strings.Split(text, "/"); len(parts) >= 4 {
		o.add(world.Kind(parts[0]), world.ID{Namespace: parts[1], Name: parts[2]}, parts[3])
	}
}
