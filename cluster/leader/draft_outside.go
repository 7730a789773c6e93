// SPDX-License-Identifier: Apache-2.0

package leader

import "fairlead.io/fairlead/fsm/world"

// outside is the draft as it would come: before what the views show, or in place of a source. Errors: there is no such source, or it is none
// whose whole a draft can say.
func (d *Draft) outside(in OutsideInput) (drafted *world.World, stand *standIn, err error) {
	w := PartOutside.View(d.World.Clone())
	from := new(mergingOutside).merge(in.Views)
	inherit(&w, from)
	inheritMeta(w.Drivers, from.drivers, func(o *world.Driver) *world.Meta { return &o.Meta })
	inheritMeta(w.LoadBalancers, from.balancers, func(o *world.OutsideBalancer) *world.Meta { return &o.Meta })
	inheritMeta(w.BackendGroups, from.groups, func(o *world.BackendGroup) *world.Meta { return &o.Meta })
	inheritMeta(w.Binds, from.binds, func(o *world.Bind) *world.Meta { return &o.Meta })
	inheritMeta(w.BackendRecords, from.records, func(o *world.BackendRecord) *world.Meta { return &o.Meta })
	inheritMeta(w.Pods, from.pods, func(o *world.Pod) *world.Meta { return &o.Meta })
	for i := range w.LoadBalancers { // what we put on every object that we look after
		w.LoadBalancers[i].Finalizer = true
	}
	for i := range w.Binds {
		w.Binds[i].Finalizer = true
	}
	w.Sort()
	i, err := d.place(in.Views)
	if err != nil || i < 0 {
		return &w, nil, err
	}
	return nil, inPlace(in.Views, i, &w, PartOutside), nil
}
