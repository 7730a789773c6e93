// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// owners keeps which manager owns which field, with the field managers of a real API server.
type owners struct {
	converter managedfields.TypeConverter
	managers  map[place]*managedfields.FieldManager
}

// place is where fields are written.
type place struct {
	resource    *resource
	subresource string
}

func newOwners() *owners {
	return &owners{converter: applyconfigurations.NewTypeConverter(scheme.Scheme), managers: map[place]*managedfields.FieldManager{}}
}

// at gives the manager of a place. What a place resets is owned by nobody who writes there.
func (w *owners) at(r *resource, subresource string) *managedfields.FieldManager {
	p := place{r, subresource}
	if m := w.managers[p]; m != nil {
		return m
	}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	if r.status {
		other := "status"
		if subresource == "status" {
			other = "spec"
		}
		reset[fieldpath.APIVersion(r.GroupVersion.String())] = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie(other)))
	}
	m, err := managedfields.NewDefaultFieldManager(w.converter, scheme.Scheme, scheme.Scheme, scheme.Scheme, r.gvk(), r.GroupVersion, subresource, reset)
	if err != nil {
		panic(fmt.Sprintf("kube: field manager of %s: %v", r.name, err)) // of kinds that client-go itself knows
	}
	w.managers[p] = m
	return m
}

// update notes who owns what after a write that was no apply.
func (w *owners) update(r *resource, before, next Object, by writer, now metav1.Time) Object {
	if !r.tracked {
		return next
	}
	o := w.at(r, by.subresource).UpdateNoErrors(r.dress(before), r.dress(next), by.manager).(Object)
	undress(o)
	stamp(o, before, now)
	return o
}

// apply merges what a manager wishes into an object.
func (w *owners) apply(r *resource, before Object, patch *unstructured.Unstructured, by writer, force bool, now metav1.Time) (Object, *failure) {
	out, err := w.at(r, by.subresource).Apply(r.dress(before), patch, by.manager, force)
	if err != nil {
		var status *apierrors.StatusError
		if errors.As(err, &status) {
			return nil, &failure{Status: status.ErrStatus, senseless: !apierrors.IsConflict(err)}
		}
		return nil, unhandled("%v", err)
	}
	o := out.(Object)
	undress(o)
	stamp(o, before, now)
	return o, nil
}

// entryOf tells entries of managed fields apart.
type entryOf struct {
	manager     string
	operation   metav1.ManagedFieldsOperationType
	version     string
	subresource string
}

func entryKey(m metav1.ManagedFieldsEntry) entryOf {
	return entryOf{m.Manager, m.Operation, m.APIVersion, m.Subresource}
}

// stamp brings the times of managed fields to the clock of the world, and in the order that follows from them.
func stamp(o, before Object, now metav1.Time) {
	had := map[entryOf]*metav1.Time{}
	for _, m := range before.GetManagedFields() {
		had[entryKey(m)] = m.Time
	}
	all := slices.Clone(o.GetManagedFields())
	for i := range all {
		if t, ok := had[entryKey(all[i])]; !ok || !all[i].Time.Equal(t) {
			all[i].Time = &now
		}
	}
	slices.SortFunc(all, func(a, b metav1.ManagedFieldsEntry) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), a.Time.Compare(b.Time.Time), cmp.Compare(a.Manager, b.Manager),
			cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
	})
	o.SetManagedFields(all)
}

// same tells whether a write changed nothing, or only times in managed fields.
func (w *owners) same(r *resource, a, b Object) bool {
	timeless := func(o Object) []metav1.ManagedFieldsEntry {
		all := slices.Clone(o.GetManagedFields())
		for i := range all {
			all[i].Time = nil
		}
		slices.SortFunc(all, func(a, b metav1.ManagedFieldsEntry) int {
			return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource))
		})
		return all
	}
	if !equality.Semantic.DeepEqual(timeless(a), timeless(b)) {
		return false
	}
	x, y := r.shallow(a), r.shallow(b)
	for _, o := range []Object{x, y} {
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
	}
	return equality.Semantic.DeepEqual(x, y)
}
