// SPDX-License-Identifier: Apache-2.0

package kubetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// applier is the field manager of Apply.
const applier = "kubetest"

// Apply writes the objects of manifests, as `kubectl apply --server-side` does. Kinds that are defined a moment ago are
// waited for.
func (c *Cluster) Apply(ctx context.Context, manifests string) error {
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))
	documents := utilyaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(manifests), 4096)
	for {
		o := &unstructured.Unstructured{}
		switch err := documents.Decode(&o.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("apply: %w", err)
		case len(o.Object) == 0:
			continue
		}
		if err := applyOne(ctx, client, mapper, o); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
}

// Conflicts is how often a change is made anew that somebody else's write came before: members and controllers write to the same objects,
// and a busy machine leaves them much time to.
func Conflicts() wait.Backoff {
	return wait.Backoff{Steps: 200, Duration: 10 * time.Millisecond, Factor: 1, Jitter: 0.5}
}

// newKindWithin is how long the API server may take to serve a kind that was just defined, on a machine that does much besides.
const newKindWithin = 2 * time.Minute

func applyOne(ctx context.Context, client dynamic.Interface, mapper meta.ResettableRESTMapper, o *unstructured.Unstructured) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, newKindWithin, true, func(ctx context.Context) (bool, error) {
		kind := o.GroupVersionKind()
		m, err := mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, kind.Version)
		if meta.IsNoMatchError(err) {
			mapper.Reset()
			last = err
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var resource dynamic.ResourceInterface = client.Resource(m.Resource)
		if m.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace := o.GetNamespace()
			if namespace == "" {
				namespace = metav1.NamespaceDefault
			}
			resource = client.Resource(m.Resource).Namespace(namespace)
		}
		_, err = resource.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: applier, Force: true})
		return true, err
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

// ApplyFiles applies all files that match a pattern.
func (c *Cluster) ApplyFiles(ctx context.Context, pattern string) error {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return fmt.Errorf("apply %s: no such files (%v)", pattern, err)
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := c.Apply(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
