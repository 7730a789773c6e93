// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"fairlead.io/fairlead/e2e/release"
	"fairlead.io/fairlead/internal/testkit"
)

// Binaries is the environment variable that names a folder with the programs that ship, built from this checkout: hack/testrun builds
// them once for all processes of tests.
const Binaries = "FAIRLEAD_BINARIES"

// binary builds the shipped command once for all tests of a process, unless it is there.
var binary = sync.OnceValues(func() (string, error) { return Build("fairlead") })

// Build is the path of a program of cmd/, from the folder that Binaries names or built into a new one.
func Build(program string) (string, error) {
	if folder := os.Getenv(Binaries); folder != "" {
		return filepath.Join(folder, program), nil
	}
	dir, err := os.MkdirTemp("", "fairlead-lab-")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // others may run it, too
		return "", err
	}
	path := filepath.Join(dir, program)
	if out, err := exec.Command("go", "build", "-trimpath", "-o", path, "fairlead.io/fairlead/cmd/"+program).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", program, err, out)
	}
	return path, nil
}

// Release is the path of the command of the older release. The test is skipped where the history is not there, as in a shallow clone.
func Release(t testing.TB) string {
	t.Helper()
	path, err := release.Build(t.TempDir())
	switch {
	case errors.Is(err, release.ErrNoHistory):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return path
}

// Binary is the path of the shipped command, built from this checkout.
func Binary(t testing.TB) string {
	t.Helper()
	testkit.NotFast(t, "builds the command that ships")
	path, err := binary()
	if err != nil {
		t.Fatalf("build fairlead: %v", err)
	}
	return path
}
