// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"maps"
	"slices"

	"fairlead.io/fairlead/cluster/leader/policies"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// policiesOf are the objects that the record's policies are there for, in order and each once.
func policiesOf(record *fsm.View) []KnownObject {
	known := map[KnownObject]bool{}
	for _, r := range fsm.List[*fsm.Policy](record, fsm.TablePolicies) {
		policies.Known(r, func(kind world.Kind, id world.ID, uid string) { known[KnownObject{kind, id, uid}] = true })
	}
	return slices.SortedFunc(maps.Keys(known), func(a, b KnownObject) int { return subject(a).compare(subject(b)) })
}
