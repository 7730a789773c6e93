// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"maps"
	"slices"

	"fairlead.io/fairlead/cluster/leader/redirects"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// redirectsOf are the objects that the record's redirects are there for, in order and each once.
func redirectsOf(record *fsm.View) []KnownObject {
	known := map[KnownObject]bool{}
	for _, r := range fsm.List[*fsm.Redirect](record, fsm.TableRedirects) {
		redirects.Known(r, func(kind world.Kind, id world.ID, uid string) { known[KnownObject{kind, id, uid}] = true })
	}
	return slices.SortedFunc(maps.Keys(known), func(a, b KnownObject) int { return subject(a).compare(subject(b)) })
}
