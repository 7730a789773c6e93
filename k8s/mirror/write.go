// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is an object of one of the kinds.
type Object interface {
	metav1.Object
	runtime.Object
}

// Verb is how an object is written.
type Verb string

// The verbs, as metrics name them (lbcf §8).
const (
	Create       Verb = "Create"
	Update       Verb = "Update"
	UpdateStatus Verb = "UpdateStatus"
	Delete       Verb = "Delete"
	// Patch changes annotations and finalizers alone, so that fields which nobody here knows stay.
	Patch Verb = "Patch"
)

// Write is a change of one object. It is for the very object that was looked at: its resourceVersion, or for Delete its
// UID, is a precondition.
type Write struct {
	Verb
	Key
	// Object is what the object shall be. Of it, UpdateStatus means the status, Patch annotations and finalizers, and
	// Delete only whose UID it has.
	Object Object
	// Patient says that it may wait for what comes after it: it tells of a failure, or of something on its way.
	Patient bool
}

// deleting tells whether an object is going.
func deleting(o Object) bool { return o.GetDeletionTimestamp() != nil }

func has(o Object, finalizer string) bool {
	for _, f := range o.GetFinalizers() {
		if f == finalizer {
			return true
		}
	}
	return false
}

// finalized is the write that adds or removes our finalizer.
func finalized[O Object](k Key, given O, want bool) *Write {
	o := given.DeepCopyObject().(O)
	name, kept := finalizerOf(k.Kind), []string{}
	for _, f := range o.GetFinalizers() {
		if f != name {
			kept = append(kept, f)
		}
	}
	if want {
		kept = append(kept, name)
	}
	o.SetFinalizers(kept)
	return &Write{Verb: Patch, Key: k, Object: o}
}

// annotated sets annotations on an object that may be written to.
func annotated(o Object, values map[string]string) {
	all := maps.Clone(o.GetAnnotations())
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, values)
	o.SetAnnotations(all)
}
