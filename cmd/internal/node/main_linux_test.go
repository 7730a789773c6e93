// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"flag"
	"os"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/subprocess"
	"fairlead.io/fairlead/internal/netnstest"
)

// TestMain lets more tests run at once than there are processors: they wait for agents and for the kernel most of the time. Calls that no
// program resolves go nowhere.
func TestMain(m *testing.M) {
	if subprocess.IsChild() {
		os.Exit(subprocess.Main())
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	os.Exit(netnstest.Main(m))
}
