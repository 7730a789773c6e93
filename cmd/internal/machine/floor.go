// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/dataplane/agent/disk"
)

// openFloor opens a floor of this boot of the machine: one in a folder that outlived a boot counts for nothing.
func openFloor(dir, server string) (*store.Floor, error) {
	boot, err := disk.BootID()
	if err != nil {
		return nil, fmt.Errorf("read the id of this boot: %w", err)
	}
	return store.OpenFloor(dir, server, boot), nil
}
