// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"os"
	"testing"
)

// FastVariable is the environment variable that, set to 1, asks for the fast tests alone (`make test-fast`).
const FastVariable = "FAIRLEAD_TEST_FAST"

// NotFast skips a test that the fast tests leave out: one that needs root, starts a real server or a compiler, or plays simulated
// worlds. why names what it does, as in "starts a Kubernetes API server". hack/testrun knows such a skip by its text, and runs the
// test among the others.
func NotFast(t testing.TB, why string) {
	t.Helper()
	if os.Getenv(FastVariable) == "1" {
		t.Skip("not among the fast tests: it " + why)
	}
}

// Long is NotFast for a test that -short leaves out, too.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out of -short: it " + why)
	}
	NotFast(t, why)
}
