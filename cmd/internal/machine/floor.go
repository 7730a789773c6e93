// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"crypto/rand"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/dataplane/agent/disk"
)

// openFloor opens a floor of this boot of the machine: one in a folder that outlived a boot counts for nothing. Where nobody knows which boot this is
// none of a former process does, so that the others are asked at each start.
func openFloor(dir, server string) *store.Floor {
	boot, err := disk.BootID()
	if err != nil {
		boot = rand.Text()
	}
	return store.OpenFloor(dir, server, boot)
}
