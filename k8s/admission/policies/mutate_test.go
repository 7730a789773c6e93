// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/admission"
	"fairlead.io/fairlead/k8s/api/balancing"
)

// patched gives the id that a patch leaves an object with.
func patched(t rapid.TB, r admission.Request, d admission.Decision) string {
	t.Helper()
	if d.Denied != "" {
		t.Fatal(d.Denied)
	}
	object := r.Object
	if len(d.Patch) > 0 {
		text, err := json.Marshal(d.Patch)
		if err != nil {
			t.Fatal(err)
		}
		patch, err := jsonpatch.DecodePatch(text)
		if err != nil {
			t.Fatal(err)
		}
		if object, err = patch.Apply(object); err != nil {
			t.Fatal(err)
		}
	}
	var o struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(object, &o); err != nil {
		t.Fatal(err)
	}
	return o.Metadata.Annotations[balancing.AnnotationServiceID]
}

// Sections 2.3 and 3: an id is given where there is none, with annotations or without; what the user wrote stays.
func TestPoliciesWithoutAnIDAreGivenOne(t *testing.T) {
	const note = `, annotations: {balancing.elf.io/serviceId: "7"}`
	for name, c := range map[string]struct {
		after, before string
		drawn         balancing.ID
		want          string
	}{
		"kubectl-create":       {edited(t, good, note, ""), "", 77, "77"},
		"empty-annotations":    {edited(t, good, note, ", annotations: {}"), "", 77, "77"},
		"null-annotations":     {edited(t, good, note, ", annotations: null"), "", 77, "77"},
		"other-annotations":    {edited(t, good, note, ", annotations: {a: b}"), "", 77, "77"},
		"never-zero":           {edited(t, good, note, ""), "", 0, "1"},
		"not-another's":        {edited(t, good, note, ""), "", 9, "10"},
		"not-the-other-kind's": {edited(t, good, note, ""), "", 4294967295, "1"},
		"the-user's":           {good, "", 77, "7"},
		"the-user's-bad":       {edited(t, good, id, `"0"`), "", 77, "0"},
		"removed":              {edited(t, good, note, ""), good, 77, "7"},
		"changed":              {edited(t, good, id, `"8"`), good, 77, "8"}, // Validate refuses it
		"never-had-one":        {edited(t, good, note, ""), edited(t, good, note, ""), 77, "77"},
		"had-a-bad-one":        {edited(t, good, note, ""), edited(t, good, id, `"0"`), 77, "77"},
	} {
		t.Run(name, func(t *testing.T) {
			r := asks(t, Balancing, c.after, c.before)
			if got := patched(t, r, Mutate(r, town(t), c.drawn)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	bare := admission.Request{Kind: LocalRedirect, Operation: "CREATE", Object: []byte(`{"spec":{}}`)}
	if got := patched(t, bare, Mutate(bare, town(t), 5)); got != "5" {
		t.Errorf("without metadata: %q", got)
	}
}

// A1: what is given is what Validate takes, whatever was drawn.
func TestPropertyGivenIDsAreFree(t *testing.T) {
	object := raw(t, edited(t, good, `, annotations: {balancing.elf.io/serviceId: "7"}`, ""))
	stored := town(t)
	testkit.Check(t, func(t *rapid.T) {
		drawn := balancing.ID(rapid.SampledFrom([]uint32{0, 1, 8, 9, 10, 1<<32 - 2, 1<<32 - 1}).Draw(t, "drawn"))
		r := admission.Request{Kind: Balancing, Operation: "CREATE", Name: "a"}
		r.Object = object
		got, err := balancing.ParseID(patched(t, r, Mutate(r, stored, drawn)))
		if err != nil || got == 9 || got == 4294967295 {
			t.Fatalf("%s, %v", got, err)
		}
	})
}
