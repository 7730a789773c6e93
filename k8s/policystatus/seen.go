// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/api/balancing/v1beta1"
)

// Seen is what the API server last showed of one policy. It is immutable.
type Seen struct {
	ID              fsm.PolicyID // as of the record: kind and name
	UID             string
	ResourceVersion string
	Generation      int64
	// Going says that it has a deletionTimestamp, Disabled that it is withdrawn.
	Going, Disabled bool
	Status          v1beta1.PolicyStatus
}

// Life is the policy's UID.
func (s *Seen) Life() string { return s.UID }

// Version is the policy's resourceVersion.
func (s *Seen) Version() string { return s.ResourceVersion }

// SeenOf takes from a policy what Seen keeps, as the source shows it or as the API server answers. What cannot be read of its status is
// as if it were not there.
func SeenOf(kind world.Kind, o *unstructured.Unstructured) *Seen {
	s := &Seen{
		ID: fsm.PolicyID(string(kind) + "/" + o.GetName()), UID: string(o.GetUID()), ResourceVersion: o.GetResourceVersion(),
		Generation: o.GetGeneration(), Going: o.GetDeletionTimestamp() != nil,
	}
	enabled, given, _ := unstructured.NestedBool(o.Object, "spec", "enabled")
	s.Disabled = given && !enabled
	if status, ok := o.Object["status"].(map[string]any); ok {
		if runtime.DefaultUnstructuredConverter.FromUnstructured(status, &s.Status) != nil {
			s.Status = v1beta1.PolicyStatus{}
		}
	}
	return s
}

// fields are what is applied to a policy: what stands here becomes ours, what does not is left alone or given up.
type fields struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        fieldsMeta           `json:"metadata"`
	Status          v1beta1.PolicyStatus `json:"status"`
}

type fieldsMeta struct {
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

func appliedFields(w *Write) ([]byte, error) {
	kind, name, _ := strings.Cut(string(w.ID), "/")
	return json.Marshal(fields{
		TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion().String(), Kind: kind},
		Metadata: fieldsMeta{name, w.UID, w.ResourceVersion}, Status: w.Status,
	})
}
