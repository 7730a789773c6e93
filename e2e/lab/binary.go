// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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

// Release is the path of the command as it was before the newest commit of this checkout that took a text out of a
// file. The test is skipped where the history is not there, as in a shallow clone.
func Release(t testing.TB, file, text string) string {
	t.Helper()
	git := func(args ...string) []byte {
		out, err := exec.Command("git", args...).Output()
		if err != nil {
			t.Skipf("the history of this checkout is needed for an older release: git %s: %v", args[0], err)
		}
		return out
	}
	top := strings.TrimSpace(string(git("rev-parse", "--show-toplevel")))
	commit := strings.TrimSpace(string(git("-C", top, "log", "-1", "--format=%H", "-S", text, "--", file)))
	if commit == "" {
		t.Skipf("no commit of this checkout took %q out of %s", text, file)
	}
	dir := t.TempDir()
	unpack := exec.Command("tar", "-x", "-C", dir)
	unpack.Stdin = bytes.NewReader(git("-C", top, "archive", commit+"^"))
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v: %s", commit, err, out)
	}
	path := filepath.Join(dir, "fairlead-released")
	build := exec.Command("go", "build", "-o", path, "./cmd/fairlead")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v: %s", commit, err, out)
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
