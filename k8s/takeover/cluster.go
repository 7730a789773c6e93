// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"fairlead.io/fairlead/k8s/api/lbcf/v1"
	"fairlead.io/fairlead/k8s/api/lbcf/v1beta1"
	"fairlead.io/fairlead/k8s/client"
	"fairlead.io/fairlead/k8s/handover"
)

// pageObjects is how many objects a request asks for.
const pageObjects = 500

// ErrNothing says that LBCF's kinds are not installed.
var ErrNothing = errors.New("no kind of lbcf.tkestack.io is installed: there is nothing to take over")

// Cluster is one with an installation of LBCF.
type Cluster struct {
	api     *client.API
	running *handover.Cluster
	pods    *client.Group
}

// In gives the cluster of an API server. It does not ask it anything.
func In(api *client.API) (*Cluster, error) {
	running, err := handover.In(api)
	if err != nil {
		return nil, err
	}
	pods, err := api.Group(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	if err != nil {
		return nil, err
	}
	return &Cluster{api: api, running: running, pods: pods}, nil
}

// Read reads the installation once, and changes nothing.
//
// Errors: ErrNothing, or the API server did not answer.
func (c *Cluster) Read(ctx context.Context) (Installation, error) {
	var in Installation
	var err error
	if in.Definitions, err = c.definitions(ctx); err != nil {
		return in, err
	}
	if len(in.Definitions) == 0 {
		return in, ErrNothing
	}
	if in.Running, err = c.running.Look(ctx); err != nil {
		return in, err
	}
	beta := v1beta1.GroupVersion()
	for _, read := range []func() error{
		func() error {
			return list(ctx, c, &in, beta.WithResource("loadbalancerdrivers"), &in.Drivers)
		},
		func() error { return list(ctx, c, &in, beta.WithResource("loadbalancers"), &in.LoadBalancers) },
		func() error { return list(ctx, c, &in, beta.WithResource("backendgroups"), &in.Groups) },
		func() error { return list(ctx, c, &in, beta.WithResource("backendrecords"), &in.Records) },
		func() error { return list(ctx, c, &in, v1.GroupVersion().WithResource("binds"), &in.Binds) },
	} {
		if err := read(); err != nil {
			return in, err
		}
	}
	if in.Pods, err = c.podsOf(ctx, in.Records); err != nil {
		return in, err
	}
	in.Configurations, err = c.configurations(ctx)
	return in, err
}

// list reads all objects of a kind. What cannot be decoded is noted; a kind that is not installed has no objects.
func list[T any](ctx context.Context, c *Cluster, in *Installation, resource schema.GroupVersionResource, into *[]T) error {
	o := metav1.ListOptions{Limit: pageObjects}
	for {
		page, err := c.api.Dynamic.Resource(resource).List(ctx, o)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for i := range page.Items {
			var one T
			if err := decode(&page.Items[i], &one); err != nil {
				in.Unreadable = append(in.Unreadable, Finding{
					Object: page.Items[i].GetKind() + " " + nameOf(&page.Items[i]), What: "cannot be read: " + err.Error(),
					Then: "it is left as it is until it can be read",
				})
				continue
			}
			*into = append(*into, one)
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

func decode(o *unstructured.Unstructured, into any) error {
	text, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// podsOf reads the pods of all namespaces that have BackendRecords.
func (c *Cluster) podsOf(ctx context.Context, records []v1beta1.BackendRecord) (map[types.NamespacedName]Pod, error) {
	out := map[types.NamespacedName]Pod{}
	seen := map[string]bool{}
	for i := range records {
		namespace := records[i].Namespace
		if seen[namespace] {
			continue
		}
		seen[namespace] = true
		o := metav1.ListOptions{Limit: pageObjects}
		for {
			page, err := client.CollectionOf[corev1.Pod, corev1.PodList](c.pods, "pods", namespace).List(ctx, o)
			if err != nil {
				return nil, fmt.Errorf("list pods of %s: %w", namespace, err)
			}
			for i := range page.Items {
				out[types.NamespacedName{Namespace: namespace, Name: page.Items[i].Name}] = podOf(&page.Items[i])
			}
			if o.Continue = page.Continue; o.Continue == "" {
				break
			}
		}
	}
	return out, nil
}

func podOf(p *corev1.Pod) Pod {
	out := Pod{UID: p.UID, IP: p.Status.PodIP, Labels: p.Labels, Deleting: p.DeletionTimestamp != nil, Running: p.Status.Phase == corev1.PodRunning}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready = c.Status == corev1.ConditionTrue
		}
	}
	return out
}

// definitions reads those of LBCF's kinds that are there.
func (c *Cluster) definitions(ctx context.Context) (out []unstructured.Unstructured, err error) {
	for _, name := range []string{"loadbalancerdrivers", "loadbalancers", "backendgroups", "backendrecords", "binds"} {
		one, err := c.api.Dynamic.Resource(definitionKind()).Get(ctx, name+".lbcf.tkestack.io", metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("get definition of %s: %w", name, err)
		default:
			out = append(out, *one)
		}
	}
	return out, nil
}

func (c *Cluster) configurations(ctx context.Context) (out []unstructured.Unstructured, err error) {
	for kind, name := range configurationKinds() {
		one, err := c.api.Dynamic.Resource(kind).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("get %s %s: %w", kind.Resource, name, err)
		default:
			out = append(out, *one)
		}
	}
	return out, nil
}
