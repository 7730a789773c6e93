// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// sortedKeys lists the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// firstIf orders what is so before what is not.
func firstIf(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// idOf splits "namespace/name".
func idOf(s fsm.ServiceID) world.ID {
	namespace, name, ok := strings.Cut(string(s), "/")
	if !ok {
		return world.ID{Name: string(s)}
	}
	return world.ID{Namespace: namespace, Name: name}
}
