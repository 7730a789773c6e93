// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/internal/testkit"
)

// The overlays build upon the manifests of this repository.
func TestOverlaysBuild(t *testing.T) {
	testkit.NotFast(t, "builds kustomize")
	in := installation(3, "cp-1")
	p, err := Decide(in, Options{Out: "out"})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	base, err := filepath.Rel(filepath.Join(dir, "out/first"), filepath.Join(repo, "deploy/base"))
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if err := Write(out, Files(p, in, Rendering{Base: base, Image: "registry.example.com/fairlead:v1", Token: "TOKEN"})); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string][]string{
		"first": {"bootstrapToken", "minAvailable: 1", "image: registry.example.com/fairlead:v1", "kind: DaemonSet"},
		"group": {"192.0.2.13:7444", "minAvailable: 2", "image: registry.example.com/fairlead:v1"},
	} {
		cmd := exec.Command("go", "tool", "kustomize", "build", filepath.Join(out, folder))
		cmd.Dir = filepath.Join(repo, "deploy/kustomize")
		cmd.Env = append(os.Environ(), "GOFLAGS=")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		built, err := cmd.Output()
		if err != nil {
			if strings.Contains(stderr.String(), "go: ") && os.Getenv(birdtest.RequireTools) != "1" {
				t.Skipf("no kustomize: %s", stderr.String())
			}
			t.Fatalf("%s: %v\n%s", folder, err, stderr.String())
		}
		for _, w := range want {
			if !strings.Contains(string(built), w) {
				t.Errorf("%s lacks %q", folder, w)
			}
		}
		if folder == "group" && strings.Contains(string(built), "bootstrapToken") {
			t.Error("the token stays in the configuration")
		}
	}
}
