// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"maps"
	"slices"

	"fairlead.io/fairlead/internal/nftally"
)

// Tally implements Edge.
func (k *kernel) Tally() (map[string]uint64, error) {
	return nftally.Packets(k.netns, TableName, slices.Sorted(maps.Keys(reasons)))
}

// Clients implements Edge.
func (k *kernel) Clients(ctx context.Context, sets []string, most int) (map[string]int, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nftally.Elements(k.netns, TableName, sets, most)
}
