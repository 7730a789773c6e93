// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"

	"fairlead.io/fairlead/cluster/pki"
)

// Member is one member as a process.
type Member struct {
	*Process
	Address string // loopback address of all its sockets
	DataDir string
	Config  string    // path of its controller.yaml
	Files   pki.Files // its certificate, by which a test proposes as it: nobody may who is no server of the group
}

// Wipe removes the data folder of a member that does not run.
func (m *Member) Wipe() {
	m.t.Helper()
	if err := os.RemoveAll(m.DataDir); err != nil {
		m.t.Fatal(err)
	}
}
