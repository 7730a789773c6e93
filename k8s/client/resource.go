// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// object is a pointer to a T that the API knows how to carry.
type object[T any] interface {
	*T
	runtime.Object
}

// Resource is the way to the objects of one kind, in a namespace or, if it is empty, in none or in all. Its requests
// are those that client-go's clients make, and so are its errors (apimachinery's api/errors tells them apart).
type Resource[T any, P object[T]] struct {
	group     *Group
	name      string // plural
	namespace string
}

// ResourceOf is the way to a kind that was named to the group.
func ResourceOf[T any, P object[T]](g *Group, name, namespace string) Resource[T, P] {
	return Resource[T, P]{g, name, namespace}
}

// Get reads one object.
func (r Resource[T, P]) Get(ctx context.Context, name string, o metav1.GetOptions) (P, error) {
	out := P(new(T))
	return out, r.at(r.group.rest.Get()).Name(name).VersionedParams(&o, r.group.parameters).Do(ctx).Into(out)
}

// Create creates an object and gives what the server made of it.
func (r Resource[T, P]) Create(ctx context.Context, given P, o metav1.CreateOptions) (P, error) {
	out := P(new(T))
	return out, r.at(r.group.rest.Post()).VersionedParams(&o, r.group.parameters).Body(given).Do(ctx).Into(out)
}

// Update replaces an object, or a subresource of it, and gives it as it is then. It is refused (Conflict) if the
// resourceVersion or the UID in it are no longer the object's.
func (r Resource[T, P]) Update(ctx context.Context, name string, given P, o metav1.UpdateOptions, subresource ...string) (P, error) {
	out := P(new(T))
	return out, r.at(r.group.rest.Put()).Name(name).SubResource(subresource...).
		VersionedParams(&o, r.group.parameters).Body(given).Do(ctx).Into(out)
}

// Patch changes what a patch of a kind says, in an object or a subresource of it, and gives it as it is then.
func (r Resource[T, P]) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresource ...string) (P, error) {
	out := P(new(T))
	return out, r.at(r.group.rest.Patch(kind)).Name(name).SubResource(subresource...).
		VersionedParams(&o, r.group.parameters).Body(patch).Do(ctx).Into(out)
}

// Delete deletes an object, if it is the one that o's preconditions mean.
func (r Resource[T, P]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return r.at(r.group.rest.Delete()).Name(name).Body(&o).Do(ctx).Error()
}

// Apply applies fields, which marshal to JSON, to an object or a subresource of it (server-side apply), and gives the
// object as it is then.
func (r Resource[T, P]) Apply(ctx context.Context, name string, fields any, o metav1.ApplyOptions, subresource ...string) (P, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the fields of %s %s: %w", r.name, name, err)
	}
	patch := o.ToPatchOptions()
	out := P(new(T))
	return out, r.at(r.group.rest.Patch(types.ApplyYAMLPatchType)).Name(name).SubResource(subresource...).
		VersionedParams(&patch, r.group.parameters).Body(body).Do(ctx).Into(out)
}

func (r Resource[T, P]) at(q *rest.Request) *rest.Request {
	return q.NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name)
}

// Collection is a Resource that can be listed and watched.
type Collection[T, L any, P object[T], Q object[L]] struct {
	Resource[T, P]
}

// CollectionOf is the way to a kind that was named to the group, as was its list.
func CollectionOf[T, L any, P object[T], Q object[L]](g *Group, name, namespace string) Collection[T, L, P, Q] {
	return Collection[T, L, P, Q]{ResourceOf[T, P](g, name, namespace)}
}

// List lists what o selects.
func (c Collection[T, L, P, Q]) List(ctx context.Context, o metav1.ListOptions) (Q, error) {
	out := Q(new(L))
	return out, c.asked(&o).Do(ctx).Into(out)
}

// Watch opens a watch of what o selects.
func (c Collection[T, L, P, Q]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return c.asked(&o).Watch(ctx)
}

func (c Collection[T, L, P, Q]) asked(o *metav1.ListOptions) *rest.Request {
	q := c.at(c.group.rest.Get()).VersionedParams(o, c.group.parameters)
	if o.TimeoutSeconds != nil {
		q.Timeout(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	return q
}
