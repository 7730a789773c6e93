// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"maps"
	"slices"

	"fairlead.io/fairlead/internal/nftally"
)

// Tally implements Edge.
func (k *linux) Tally() (map[string]uint64, error) {
	return nftally.Packets(k.o.Namespace, TableName, slices.Sorted(maps.Keys(reasons)))
}
