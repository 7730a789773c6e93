// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// binary builds the shipped command once for all tests of a process.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "fairlead-lab-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "fairlead")
	cmd := exec.Command("go", "build", "-o", path, "fairlead.io/fairlead/cmd/fairlead")
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

// Binary is the path of the shipped command, built from this checkout.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatalf("build fairlead: %v", err)
	}
	return path
}
