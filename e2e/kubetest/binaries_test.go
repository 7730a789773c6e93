// SPDX-License-Identifier: Apache-2.0

package kubetest_test

import (
	"os"
	"path/filepath"
	"strings"
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
