// SPDX-License-Identifier: Apache-2.0

package records

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

func quiet(string, []string) string { return "" }

// A filter that can match nothing is refused with what could: a field that documents do not have, and a value that the field never has.
func TestPropertyFiltersThatMatchNothingAreRefused(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(Kinds()).Draw(t, "kind")
		field := rapid.SampledFrom(k.Fields()).Draw(t, "field")
		if why, _ := k.CheckFilter(map[string]string{field + "x": "y"}, quiet); !strings.Contains(why, field+"x") {
			t.Fatalf("%s of %s: %q", field+"x", k.Name, why)
		}
		values := k.Values(field)
		for _, v := range append([]string{""}, values...) {
			if why, _ := k.CheckFilter(map[string]string{field: v}, quiet); why != "" {
				t.Fatalf("%s=%s of %s: %s", field, v, k.Name, why)
			}
		}
		why, remedy := k.CheckFilter(map[string]string{field: "no value"}, quiet)
		closed := values != nil || number(k.filters()[field].Type.Kind())
		if (why != "") != closed || closed && remedy == "" {
			t.Fatalf("%s of %s, values %v: %q, %q", field, k.Name, values, why, remedy)
		}
		for _, v := range values {
			if !strings.Contains(remedy, v) {
				t.Fatalf("%s is not named: %s", v, remedy)
			}
		}
	})
}

// Every column that is a document's own field is one that a filter can be about.
func TestColumnsCanBeFilteredBy(t *testing.T) {
	states := 0
	for _, k := range Kinds() {
		if len(k.Fields()) == 0 {
			t.Errorf("%s has no fields", k.Name)
		}
		for _, c := range k.Columns {
			if _, known := k.filters()[c.Path]; !known && !strings.Contains(c.Path, ".") && !nested(k, c.Path) {
				t.Errorf("column %s of %s", c.Path, k.Name)
			}
			if c.Path == "state" {
				if states++; k.Values("state") == nil {
					t.Errorf("states of %s are not listed", k.Name)
				}
			}
		}
	}
	if states == 0 {
		t.Error("no kind has states")
	}
}

// nested tells whether a field of a kind's documents has fields of its own, such as a revision.
func nested(k Kind, field string) bool {
	t := reflect.TypeOf(documents()[k.Name])
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == field {
			return true
		}
	}
	return false
}
