// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"

	"fairlead.io/fairlead/cluster/pki"
)

// Member is one member as a process.
type Member struct {
	*Process
	Address       string // loopback address of all its sockets
	DataDir       string
	Config        string    // path of its controller.yaml
	Files         pki.Files // its certificate, by which a test proposes as it: nobody may who is no server of the group
	configuration string    // what of controller.yaml every release understands
}

// ofThisRelease is what members of a lab have besides, in controller.yaml, and what released ones refuse: Services of tests name their addresses, and
// drivers of tests are on this machine. Floors are in the lab's folder (Use): those of the machine are for members that belong to it.
const ofThisRelease = "externalIPs: warn\ndrivers: {allowed: [127.0.0.1]}\n"

// Use has the member run another release from its next start on, by a configuration that this release understands.
func (m *Member) Use(binary string) {
	m.t.Helper()
	m.Process.Use(binary)
	text := m.configuration
	if binary == Binary(m.t) {
		text = ofThisRelease + "floorDir: " + filepath.Join(filepath.Dir(m.Config), "floors") + "\n" + text
	}
	if err := os.WriteFile(m.Config, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// Wipe removes the data folder of a member that does not run.
func (m *Member) Wipe() {
	m.t.Helper()
	if err := os.RemoveAll(m.DataDir); err != nil {
		m.t.Fatal(err)
	}
}
