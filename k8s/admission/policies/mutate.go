// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"fairlead.io/fairlead/k8s/admission"
	"fairlead.io/fairlead/k8s/api/balancing"
)

// Mutate answers a request of a mutating webhook: a policy without an id gets one that no other has, neither here nor in the record, beginning with the one
// that was drawn, and one that lost its id gets it back (balancing §2.3). It gives the same patch for the same input; a
// patched object needs none.
func Mutate(r admission.Request, stored *Stored, drawn balancing.ID) admission.Decision {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		return admission.Decision{}
	}
	p, denied := read(r, "the object", r.Object)
	if denied != "" {
		return admission.Decision{Denied: denied}
	}
	if _, ok := p.notes[balancing.AnnotationServiceID]; ok || p.deleting {
		return admission.Decision{} // Validate judges it
	}
	if r.Operation == admissionv1.Update {
		if before, denied := read(r, "the stored object", r.Old); denied == "" && before.id() != 0 {
			return annotate(r, before.id())
		}
	}
	if stored.Err != nil {
		return admission.Decision{Denied: fmt.Sprintf("%s: cannot be given an id yet: %v: try again in a moment", p, stored.Err)}
	}
	used := map[balancing.ID]bool{0: true}
	for _, o := range stored.others(p) {
		used[o.id()] = true
	}
	held := func(id balancing.ID) bool {
		_, is := stored.holder(id)
		return is || used[id]
	}
	for held(drawn) { // ends after as many steps as there are policies, here and in the record
		drawn++
	}
	return annotate(r, drawn)
}

// annotate patches an id into an object, which need not have annotations yet.
func annotate(r admission.Request, id balancing.ID) admission.Decision {
	var o struct {
		Metadata *struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(r.Object, &o); err != nil {
		return admission.Decision{Denied: fmt.Sprintf("%s %s: cannot read the object: %v", r.Kind, r.Name, err)}
	}
	value := map[string]any{balancing.AnnotationServiceID: id.String()}
	step := admission.PatchOperation{Op: "add", Path: "/metadata/annotations", Value: value}
	switch {
	case o.Metadata == nil:
		step.Path, step.Value = "/metadata", map[string]any{"annotations": value}
	case o.Metadata.Annotations != nil:
		step.Path += "/" + strings.ReplaceAll(balancing.AnnotationServiceID, "/", "~1")
		step.Value = id.String()
	}
	return admission.Decision{Patch: admission.Patch{step}}
}
