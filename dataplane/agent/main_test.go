// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are processors: they mostly wait for members.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
