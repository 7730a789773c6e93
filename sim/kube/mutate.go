// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// staleWrite is what every API server says when an object has changed since it was read.
const staleWrite = "the object has been modified; please apply your changes to the latest version and try again"

// writer is who writes, and how.
type writer struct {
	by          string // for events
	manager     string // of fields
	subresource string
	verb        string // for events: "create", "update", "status"
	// apply says that the field manager has been at the object already.
	applied bool
	patched bool
}

// create makes a new object. The store keeps o.
func (s *Server) create(c *store, r *resource, o Object, w writer) (Object, *failure) {
	if r.namespaced && c.get(s.namespaces, key{"", o.GetNamespace()}) == nil {
		return nil, notFound(s.namespaces, o.GetNamespace())
	}
	if o.GetName() == "" && o.GetGenerateName() != "" {
		o.SetName(o.GetGenerateName() + s.suffix(c))
	}
	if o.GetResourceVersion() != "" {
		return nil, badRequest("resourceVersion should not be set on objects to be created")
	}
	undress(o)
	o.SetUID(c.uid())
	o.SetCreationTimestamp(c.now())
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetSelfLink("")
	o.SetGeneration(0)
	if r.counted {
		o.SetGeneration(1)
	}
	setDefaults(o)
	o = s.owners.update(r, r.blank(), o, w, c.now())
	s.allocate(c, o, nil)
	if f := invalid(r, o.GetName(), validate(r, o, nil)); f != nil {
		return nil, f
	}
	if c.get(r, keyOf(o)) != nil {
		return nil, normal(apierrors.NewAlreadyExists(r.groupResource(), o.GetName()))
	}
	c.commit(r, keyOf(o), o, w.by, w.verb)
	return o, nil
}

// update changes an object: next makes it out of a copy of what is there.
func (s *Server) update(c *store, r *resource, k key, w writer, next func(Object) (Object, *failure)) (Object, *failure) {
	before := c.get(r, k)
	if before == nil {
		return nil, notFound(r, k.name)
	}
	o, f := next(before.DeepCopyObject().(Object))
	if f != nil {
		return nil, f
	}
	undress(o)
	if keyOf(o) != k {
		return nil, badRequest("the name of the object (%s/%s) does not match the name on the URL (%s/%s)", o.GetNamespace(), o.GetName(), k.namespace, k.name)
	}
	switch version := o.GetResourceVersion(); {
	case version == "" && r.custom:
		return nil, invalid(r, k.name, field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), "", "must be specified for an update")})
	case version != "" && version != before.GetResourceVersion():
		return nil, conflict(r, k.name, staleWrite)
	}
	if f := sameLife(r, o, before, w); f != nil {
		return nil, f
	}
	setDefaults(o)
	if !w.applied {
		o = s.owners.update(r, before, o, w, c.now())
	}
	r.keep(o, before, w.subresource)
	s.allocate(c, o, before)
	if f := invalid(r, k.name, validate(r, o, before)); f != nil {
		return nil, f
	}
	o.SetGeneration(before.GetGeneration())
	if r.counted && w.subresource == "" && bodyDiffers(r, o, before) {
		o.SetGeneration(before.GetGeneration() + 1)
	}
	if s.owners.same(r, o, before) {
		return before, nil
	}
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && graceOver(o) {
		c.commit(r, k, nil, w.by, "delete")
		return o, nil
	}
	c.commit(r, k, o, w.by, w.verb)
	return o, nil
}

// sameLife makes sure that an object is meant for the one that is there, and keeps what no write changes.
func sameLife(r *resource, o, before Object, w writer) *failure {
	if uid := o.GetUID(); uid != "" && uid != before.GetUID() {
		if w.patched {
			f := invalid(r, before.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), uid, "field is immutable")})
			f.senseless = false
			return f
		}
		return conflict(r, before.GetName(), fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, before.GetUID()))
	}
	o.SetUID(before.GetUID())
	o.SetCreationTimestamp(before.GetCreationTimestamp())
	o.SetDeletionTimestamp(before.GetDeletionTimestamp())
	o.SetDeletionGracePeriodSeconds(before.GetDeletionGracePeriodSeconds())
	o.SetResourceVersion(before.GetResourceVersion())
	o.SetGenerateName(before.GetGenerateName())
	return nil
}

// remove deletes an object, or marks it where finalizers hold it.
func (s *Server) remove(c *store, r *resource, k key, by string, conditions metav1.Preconditions, grace int64) (Object, *failure) {
	before := c.get(r, k)
	if before == nil {
		return nil, notFound(r, k.name)
	}
	if uid := conditions.UID; uid != nil && *uid != before.GetUID() {
		return nil, anotherLife(r, k.name, "UID", *uid, before.GetUID())
	}
	if v := conditions.ResourceVersion; v != nil && *v != before.GetResourceVersion() {
		return nil, anotherLife(r, k.name, "ResourceVersion", *v, before.GetResourceVersion())
	}
	if len(before.GetFinalizers()) == 0 && grace == 0 {
		return c.commit(r, k, nil, by, "delete").gone, nil
	}
	if before.GetDeletionTimestamp() != nil && (grace > 0 || *before.GetDeletionGracePeriodSeconds() == 0) {
		return before, nil
	}
	o := before.DeepCopyObject().(Object)
	at := metav1.NewTime(c.now().Add(secondsOf(grace)))
	o.SetDeletionTimestamp(&at)
	o.SetDeletionGracePeriodSeconds(&grace)
	if r.counted {
		o.SetGeneration(o.GetGeneration() + 1)
	}
	c.commit(r, k, o, by, "update")
	return o, nil
}

// graceOver tells whether nobody but finalizers holds a deleted object back.
func graceOver(o Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return grace == nil || *grace == 0
}

// bodyDiffers tells whether two forms differ in what a generation counts: all but metadata and status.
func bodyDiffers(r *resource, a, b Object) bool {
	x, y := r.shallow(a), r.shallow(b)
	for _, o := range []Object{x, y} {
		if u, ok := o.(*unstructured.Unstructured); ok {
			delete(u.Object, "metadata")
			continue
		}
		bare := r.blank()
		copyMeta(o, bare)
	}
	r.keep(x, y, "")
	return !apiequality.Semantic.DeepEqual(x, y)
}

// copyMeta gives to the metadata of from.
func copyMeta(to, from Object) {
	to.SetName(from.GetName())
	to.SetNamespace(from.GetNamespace())
	to.SetGenerateName(from.GetGenerateName())
	to.SetUID(from.GetUID())
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetGeneration(from.GetGeneration())
	to.SetCreationTimestamp(from.GetCreationTimestamp())
	to.SetDeletionTimestamp(from.GetDeletionTimestamp())
	to.SetDeletionGracePeriodSeconds(from.GetDeletionGracePeriodSeconds())
	to.SetLabels(from.GetLabels())
	to.SetAnnotations(from.GetAnnotations())
	to.SetOwnerReferences(from.GetOwnerReferences())
	to.SetFinalizers(from.GetFinalizers())
	to.SetManagedFields(from.GetManagedFields())
}

// undress takes the kind off an object that has a type for it.
func undress(o Object) {
	if _, ok := o.(*unstructured.Unstructured); !ok {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
}

// suffix makes a generated name unlike others.
func (s *Server) suffix(c *store) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	var b strings.Builder
	r := s.w.Random(c.stream + "/names")
	for range 5 {
		b.WriteByte(letters[r.IntN(len(letters))])
	}
	return b.String()
}
