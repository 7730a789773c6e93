// SPDX-License-Identifier: Apache-2.0

package records_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	apirecords "fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/records"
)

// A filter that can match nothing is refused, with what may have been meant, instead of answered by an empty list.
func TestFiltersThatCanMatchNothingAreRefused(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	furnish(t, g)
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g})
	for filter, want := range map[[2]string][]string{
		{"stat", "active"}:         {`"stat"`, "did you mean state?", "filter by one of", "readyEndpoints"},
		{"state", "activ"}:         {`state is never "activ"`, "did you mean active?", "active, pending, deleting"},
		{"readyEndpoints", "two"}:  {"is a number"},
		{"addresses", "192.0.2.1"}: {`"addresses"`},
	} {
		_, err := s.Get(t.Context(), &fairleadv1.GetRequest{Kind: "services", Filter: map[string]string{filter[0]: filter[1]}})
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v: %q is missing in %v", filter, part, err)
			}
		}
	}
}

// What documents have is what filters know of them: no document has a field, or of a closed list a value, that a filter for it would be refused.
func TestDocumentsHaveWhatFiltersKnow(t *testing.T) {
	t.Parallel()
	g := grouptest.NewGroup(t)
	furnish(t, g)
	s := records.New(records.Options{Member: "m1", Record: g, Leader: g})
	seen := 0
	for _, k := range apirecords.Kinds() {
		answer, err := s.Get(t.Context(), &fairleadv1.GetRequest{Kind: k.Name})
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range answer.GetDocuments() {
			var fields map[string]any
			if err := json.Unmarshal([]byte(document), &fields); err != nil {
				t.Fatal(err)
			}
			for _, field := range k.Fields() {
				value, has := fields[field]
				text := fmt.Sprint(value)
				if values := k.Values(field); has && value != nil && text != "" && values != nil && !slices.Contains(values, text) {
					t.Errorf("%s of %s is %s, and filters know %v", field, k.Name, text, values)
				}
				seen++
			}
		}
	}
	if seen == 0 {
		t.Error("there are no documents")
	}
}
