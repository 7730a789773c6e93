// SPDX-License-Identifier: Apache-2.0

package kubetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fairlead.io/fairlead/e2e/kubetest"
)

// binaries skips a test where there are none.
func binaries(t *testing.T) string {
	t.Helper()
	dir, err := kubetest.Binaries(t.Context(), t.Output())
	if err != nil {
		t.Skip(err)
	}
	return dir
}

func TestOwnBinariesAreHonoured(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(kubetest.AssetsVariable, dir)
	if _, err := kubetest.Binaries(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), "kube-apiserver") {
		t.Errorf("an empty folder: %v", err)
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := kubetest.Binaries(t.Context(), t.Output()); got != dir || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := kubetest.New(t.Context(), kubetest.Options{}); err == nil || !strings.Contains(err.Error(), "kube-controller-manager") {
		t.Errorf("controllers are wanted and missing: %v", err)
	}
	if _, err := kubetest.New(t.Context(), kubetest.Options{NoControllers: true}); err == nil || !strings.Contains(err.Error(), "it ended") {
		t.Errorf("an API server that ends at once: %v", err)
	}
}

// Test processes start at the same time, and the first is as likely to be ended in the middle as any.
func TestBinariesAreBuiltOnceAndWhole(t *testing.T) {
	t.Setenv(kubetest.AssetsVariable, "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	calls := fakeGo(t)
	t.Setenv("FAIL", "kube-controller-manager")
	if dir, err := kubetest.Binaries(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), kubetest.AssetsVariable) {
		t.Fatalf("a build that breaks off: %q, %v", dir, err)
	}
	t.Setenv("FAIL", "none")
	if err := os.Truncate(calls, 0); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			dir, err := kubetest.Binaries(t.Context(), t.Output())
			if err != nil {
				t.Error(err)
				return
			}
			for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "fairlead", "*.building")); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n != 3 {
		t.Errorf("%d builds of 3 binaries:\n%s", n, text)
	}
}

// fakeGo puts a `go` on the path that builds nothing but files, and gives the file in which it lists what it built.
func fakeGo(t *testing.T) (calls string) {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	script := `#!/bin/sh
[ "$1" = build ] || exec ` + real + ` "$@"
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
echo "$out" >>` + calls + `
[ "$(basename "$out")" = "$FAIL" ] && exit 1
echo fake >"$out" && chmod +x "$out"
`
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return calls
}
