// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/cmd/internal/config"
)

// floorDir is where floors are kept unless the configuration says otherwise: /run is lost with each boot.
const floorDir = "/run/fairlead"

// floor opens the floor of a server; nil where this machine has none.
func (e Edges) floor(c config.Controller, server string) *store.Floor {
	if e.Floor == nil {
		return nil
	}
	return e.Floor(cmp.Or(c.FloorDir, floorDir), server)
}
