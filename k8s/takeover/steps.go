// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"fairlead.io/fairlead/internal/safeyaml"
	"fairlead.io/fairlead/k8s/handover"
)

// The field managers of what is applied. The mark has its own: applying a definition again must not take it away.
const (
	manager       = "fairlead-migrate"
	managerOfMark = "fairlead-hand-over"
)

// lookEvery is the pause between two looks for pods that end.
const lookEvery = time.Second

func definitionKind() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// configurationKinds are the kinds of LBCF's admission configurations, each with its name.
func configurationKinds() map[schema.GroupVersionResource]string {
	return map[schema.GroupVersionResource]string{
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}: validating,
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}:   mutating,
	}
}

// Stop scales the Deployments of LBCF's controller to zero and waits until none of its pods is left, since one that is
// being deleted still acts. It gives what it scaled, with the replicas that there were.
//
// Errors: ctx ended first; a pod that no Deployment made is still there.
func (c *Cluster) Stop(ctx context.Context) ([]handover.Deployment, error) {
	seen, err := c.running.Look(ctx)
	if err != nil {
		return nil, err
	}
	var stopped []handover.Deployment
	deployments := c.api.Dynamic.Resource(appsv1.SchemeGroupVersion.WithResource("deployments")).Namespace(handover.Namespace)
	for _, d := range seen.Deployments {
		if d.Wanted == 0 {
			continue
		}
		zero := []byte(`{"spec":{"replicas":0}}`)
		if _, err := deployments.Patch(ctx, d.Name, types.MergePatchType, zero, metav1.PatchOptions{FieldManager: manager}); err != nil {
			return stopped, fmt.Errorf("scale deployment %s/%s to 0: %w", handover.Namespace, d.Name, err)
		}
		stopped = append(stopped, d)
	}
	for reason := ""; ; {
		seen, err = c.running.Look(ctx)
		switch {
		case err != nil && ctx.Err() != nil && reason != "": // that the last look was cut short says nothing of what is waited for
			return stopped, fmt.Errorf("wait for LBCF to end: %s: %w", reason, ctx.Err())
		case err != nil:
			return stopped, err
		}
		var busy bool
		if reason, busy = handover.Judge(seen); !busy {
			return stopped, nil
		}
		select {
		case <-ctx.Done():
			return stopped, fmt.Errorf("wait for LBCF to end: %s: %w", reason, ctx.Err())
		case <-time.After(lookEvery):
		}
	}
}

// ApplyDefinitions applies what Fairlead brings. Objects stay as they are stored.
func (c *Cluster) ApplyDefinitions(ctx context.Context, wanted []Definition) error {
	for _, d := range wanted {
		if err := c.apply(ctx, definitionKind(), &d.object, manager); err != nil {
			return err
		}
	}
	return nil
}

// ApplyConfigurations applies manifests of LBCF's two admission configurations. Errors: they hold anything else.
func (c *Cluster) ApplyConfigurations(ctx context.Context, manifests []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	for {
		o := &unstructured.Unstructured{}
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = safeyaml.Unmarshal(text, &o.Object)
		}
		switch {
		case err != nil:
			return fmt.Errorf("read the admission configurations: %w", err)
		case len(o.Object) == 0:
			continue
		}
		kind, ok := configurationKind(o)
		if !ok {
			return fmt.Errorf("%s %s: is no admission configuration of LBCF; give only %s and %s", o.GetKind(), o.GetName(), validating, mutating)
		}
		if err := c.apply(ctx, kind, o, manager); err != nil {
			return err
		}
	}
}

func configurationKind(o *unstructured.Unstructured) (schema.GroupVersionResource, bool) {
	for kind, name := range configurationKinds() {
		switch {
		case o.GetName() != name || o.GetAPIVersion() != kind.GroupVersion().String():
		case name == validating && o.GetKind() == "ValidatingWebhookConfiguration", name == mutating && o.GetKind() == "MutatingWebhookConfiguration":
			return kind, true
		}
	}
	return schema.GroupVersionResource{}, false
}

// Mark notes that Fairlead has the objects from now on, unless that was noted before.
func (c *Cluster) Mark(ctx context.Context, now time.Time) error {
	have, err := c.definitions(ctx)
	if err != nil {
		return err
	}
	since := handedOver(have)
	if since == "" {
		since = now.UTC().Format(time.RFC3339)
	}
	mark := &unstructured.Unstructured{}
	mark.SetAPIVersion(definitionKind().GroupVersion().String())
	mark.SetKind("CustomResourceDefinition")
	mark.SetName(marked)
	mark.SetAnnotations(map[string]string{AnnotationHandedOver: since})
	return c.apply(ctx, definitionKind(), mark, managerOfMark)
}

func (c *Cluster) apply(ctx context.Context, kind schema.GroupVersionResource, o *unstructured.Unstructured, manager string) error {
	_, err := c.api.Dynamic.Resource(kind).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", kind.Resource, o.GetName(), err)
	}
	return nil
}
