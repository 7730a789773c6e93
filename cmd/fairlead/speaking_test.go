// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/subprocess"
)

// TestMain has members that tests run here start their BGP speakers.
func TestMain(m *testing.M) {
	if subprocess.IsChild() {
		os.Exit(subprocess.Main())
	}
	os.Exit(m.Run())
}
