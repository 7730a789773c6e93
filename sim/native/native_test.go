// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/sim/native"
)

func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// A new release of Go is adopted by looking at what became of the lines that are named; until then, worlds are slow.
func TestChangesFitTheInstalledGo(t *testing.T) {
	sources, err := native.Sources(goroot(t))
	if err != nil {
		t.Fatal(err)
	}
	threads := sources[filepath.Join(goroot(t), "src", "runtime", "proc.go")]
	if !strings.Contains(threads, "const haveSysmon = false") {
		t.Error("the runtime would start a thread of its own")
	}
}

func TestUnknownGoIsSaidSo(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "src", "runtime"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "src", "runtime", "proc.go"), []byte("package runtime\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := native.Sources(root); !errors.Is(err, native.ErrUnknownGo) || !strings.Contains(err.Error(), "proc.go") {
		t.Error(err)
	}
}
