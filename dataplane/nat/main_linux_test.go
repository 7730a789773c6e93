// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are processors: they mostly wait for the kernel, each in namespaces of its own.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
