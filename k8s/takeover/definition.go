// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fairlead.io/fairlead/internal/safeyaml"
)

// AnnotationHandedOver on the definition of BackendRecords says since when (RFC 3339) Fairlead has LBCF's objects. LBCF
// reads no definitions, so that it may stay after a way back.
const AnnotationHandedOver = "fairlead.io/lbcf-handed-over"

// marked is the definition that carries the annotation.
const marked = "backendrecords.lbcf.tkestack.io"

// Definition is a CustomResourceDefinition as Fairlead brings it.
type Definition struct{ object unstructured.Unstructured }

// ParseDefinitions reads manifests with one definition each.
func ParseDefinitions(manifests [][]byte) ([]Definition, error) {
	out := make([]Definition, len(manifests))
	for i, text := range manifests {
		if err := safeyaml.Unmarshal(text, &out[i].object.Object); err != nil {
			return nil, fmt.Errorf("definition %d: %w", i, err)
		}
		// LBCF's were made by v1beta1, which let fields be kept that no schema has; a schema for all of them is only taken
		// once that is off, and ours keep unknown fields by themselves.
		if err := unstructured.SetNestedField(out[i].object.Object, false, "spec", "preserveUnknownFields"); err != nil {
			return nil, fmt.Errorf("definition %s: %w", out[i].object.GetName(), err)
		}
	}
	return out, nil
}

func handedOver(definitions []unstructured.Unstructured) string {
	for i := range definitions {
		if definitions[i].GetName() == marked {
			return definitions[i].GetAnnotations()[AnnotationHandedOver]
		}
	}
	return ""
}

// compareDefinitions tells what applying the wanted ones changes.
func compareDefinitions(have []unstructured.Unstructured, wanted []Definition) []Difference {
	out := []Difference{}
	for _, w := range wanted {
		d := Difference{Name: w.object.GetName(), Changes: []string{}}
		i := slices.IndexFunc(have, func(o unstructured.Unstructured) bool { return o.GetName() == d.Name })
		if i < 0 {
			d.Changes = []string{"made"}
		} else {
			d.Changes = append(d.Changes, differences(have[i].Object, w.object.Object)...)
		}
		out = append(out, d)
	}
	return out
}

// differences names the parts of a definition that change. Versions are compared by their names: LBCF has one of each kind.
func differences(have, want map[string]any) (out []string) {
	for _, part := range []struct {
		path []string
		name string
	}{
		{[]string{"spec", "names"}, "names"}, {[]string{"spec", "scope"}, "scope"}, {[]string{"spec", "preserveUnknownFields"}, "preserveUnknownFields"},
	} {
		h, _, _ := unstructured.NestedFieldNoCopy(have, part.path...)
		w, _, _ := unstructured.NestedFieldNoCopy(want, part.path...)
		if !within(w, h) {
			out = append(out, part.name)
		}
	}
	wanted, _, _ := unstructured.NestedSlice(want, "spec", "versions")
	stored, _, _ := unstructured.NestedSlice(have, "spec", "versions")
	for _, w := range wanted {
		version, _ := w.(map[string]any)
		i := slices.IndexFunc(stored, func(s any) bool {
			m, _ := s.(map[string]any)
			return m["name"] == version["name"]
		})
		if i < 0 {
			out = append(out, fmt.Sprintf("version %v", version["name"]))
			continue
		}
		has, _ := stored[i].(map[string]any)
		for _, part := range []string{"schema", "additionalPrinterColumns", "subresources", "served", "storage"} {
			if !within(version[part], has[part]) {
				out = append(out, part)
			}
		}
	}
	return out
}

// within tells whether all that is wanted is there; a server adds defaults. What is not said is false, empty or none.
func within(want, have any) bool {
	switch w := want.(type) {
	case nil:
		return true
	case bool:
		h, _ := have.(bool)
		return w == h
	case map[string]any:
		h, ok := have.(map[string]any)
		for key, value := range w {
			if !within(value, h[key]) {
				return false
			}
		}
		return ok
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return len(w) == 0 && have == nil
		}
		for i := range w {
			if !within(w[i], h[i]) {
				return false
			}
		}
		return true
	case int64, float64:
		return fmt.Sprint(w) == fmt.Sprint(have)
	}
	return reflect.DeepEqual(want, have)
}
