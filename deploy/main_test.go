// SPDX-License-Identifier: Apache-2.0

// Package deploy_test applies the manifests to a real API server, lets the product do there what it does with no more
// rights than they give, and has whatever else is in this folder read by the tools that it is for.
package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
	"fairlead.io/fairlead/e2e/kubetest"
	"fairlead.io/fairlead/internal/testkit"
)

// missing skips a test for want of something, or fails it where that is asked for.
func missing(t *testing.T, why error) {
	t.Helper()
	if os.Getenv(birdtest.RequireTools) == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// kustomizeProgram is where the program is, which is built once.
var kustomizeProgram = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("go", "tool", "-n", "kustomize")
	cmd.Dir = "kustomize"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("no kustomize: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
})

// builds are the folders of this one, as kustomize builds them: many tests ask for the same ones.
var builds sync.Map

// kustomize builds a folder as `kubectl apply -k` does.
func kustomize(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	testkit.NotFast(t, "builds kustomize")
	if text, ok := builds.Load(folder); ok {
		return documents(t, text.([]byte))
	}
	program, err := kustomizeProgram()
	if err != nil {
		missing(t, err)
	}
	cmd := exec.Command(program, "build", folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kustomize build %s: %v\n%s", folder, err, stderr.String())
	}
	if !filepath.IsAbs(folder) {
		builds.Store(folder, out)
	}
	return documents(t, out)
}

// manifests reads a file.
func manifests(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, text)
}

func documents(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		err := d.Decode(o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			all = append(all, o)
		}
	}
}

// applier applies objects of any kind, as `kubectl apply --server-side` does.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(t *testing.T, c *kubetest.Cluster) *applier {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.Client().Discovery()))}
}

func (a *applier) resource(t *testing.T, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	gvk := o.GroupVersionKind()
	m, err := a.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	if o.GetNamespace() == "" {
		return a.client.Resource(m.Resource)
	}
	return a.client.Resource(m.Resource).Namespace(o.GetNamespace())
}

// apply applies objects, and gives them as the API server has them then.
func (a *applier) apply(t *testing.T, objects ...*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, o := range objects {
		got, err := a.resource(t, o).Apply(t.Context(), o.GetName(), o, metav1.ApplyOptions{FieldManager: "deploy"})
		if err != nil {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
		all = append(all, got)
	}
	return all
}
