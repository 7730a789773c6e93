// SPDX-License-Identifier: Apache-2.0

package check

import "fairlead.io/fairlead/fsm"

// goes is the part of L2 about objects of LBCF's kinds that are being deleted: once everything that they ask for must be
// so, none is there any more. Its finalizer came off, since what it stands for is over.
func (r *l2) goes(v *fsm.View) {
	if r.scene.now-r.looked < lookEvery || !r.settled(v) {
		return
	}
	r.looked = r.scene.now
	for _, kind := range wishKinds {
		if kind == "Pod" {
			continue // kubelets' to end
		}
		for _, o := range r.wishes.of(kind) {
			r.checked()
			if o.Metadata.Deletion != nil {
				r.broken(kind+" "+o.id(), "it is being deleted, and does not go", o.number)
			}
		}
	}
}
