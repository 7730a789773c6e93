// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
)

// sortedKeys lists the keys of a map in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	if len(m) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(m))
}

// sortedAddresses lists a set in order.
func sortedAddresses[V any](m map[netip.Addr]V) []netip.Addr {
	return slices.SortedFunc(maps.Keys(m), netip.Addr.Compare)
}
