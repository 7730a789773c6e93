// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fairlead.io/fairlead/fsm/world"
)

// typeError says what is wrong with an object that cannot be read into a value of its kind: which field, why, and what to write.
func typeError(raw []byte, into any, err error) world.Problem {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return textError(raw, into, err)
	}
	found, value, _ := strings.Cut(wrong.Value, " ")
	shape := shapeOf(wrong.Type)
	if found == shape {
		return world.Problem{Field: wrong.Field, Why: value + " does not fit", Remedy: "use a whole number that " + sizeOf(wrong.Type) + " has room for"}
	}
	remedy := "write it as the API defines it"
	switch {
	case found == "string" && shape == "number", found == "string" && shape == "bool":
		remedy = "take the quotes off"
	case shape == "string" && found == "number" && slices.Contains(durations(reflect.TypeOf(into), ""), wrong.Field):
		return world.Problem{Field: wrong.Field, Why: "a number without a unit", Remedy: noUnit}
	case shape == "string" && found != "object" && found != "array":
		remedy = "put quotes around it"
	}
	return world.Problem{Field: wrong.Field, Why: fmt.Sprintf("%s where %s belongs", shapeName(found), shapeName(shape)), Remedy: remedy}
}

// noUnit is what to do about a length of time that is a mere number.
const noUnit = "write one behind the number, as in 90s or 500ms"

// durations lists the fields of an object that are lengths of time, outside of lists.
func durations(t reflect.Type, at string) (out []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[metav1.Duration]():
		return []string{at}
	case t.Kind() != reflect.Struct, reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, durations(f.Type, join(at, name))...)
	}
	return out
}

// sizeOf names how large a number of a type may be.
func sizeOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return fmt.Sprintf("a signed field of %d bits", t.Bits())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return fmt.Sprintf("a field of %d bits without sign", t.Bits())
	}
	return "the field"
}

// textError is for texts that a type reads by itself, such as times, and of which the decoder does not say where they are.
func textError(raw []byte, into any, err error) world.Problem {
	field, _ := culprit(raw, reflect.TypeOf(into))
	p := world.Problem{Field: field, Why: strings.TrimPrefix(err.Error(), "json: "), Remedy: "write it as the API defines it"}
	if text, is := strings.CutPrefix(p.Why, "time: missing unit in duration "); is {
		p.Why, p.Remedy = text+" has no unit", noUnit
	} else if text, is := strings.CutPrefix(p.Why, "time: invalid duration "); is {
		p.Why, p.Remedy = text+" is no length of time", "write a number and a unit, as in 90s or 500ms"
	}
	return p
}

// culprit finds the first value in an object that its type cannot read by itself, as a path; not found if there is none. It looks at each value once a
// level.
func culprit(raw []byte, t reflect.Type) (path string, found bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value, reads := reflect.New(t).Interface().(json.Unmarshaler); reads {
		return "", value.UnmarshalJSON(raw) != nil
	}
	switch t.Kind() {
	case reflect.Struct:
		var values map[string]json.RawMessage
		if json.Unmarshal(raw, &values) != nil {
			return "", false
		}
		return culpritField(raw, values, t)
	case reflect.Slice, reflect.Array:
		var values []json.RawMessage
		if json.Unmarshal(raw, &values) != nil {
			return "", false
		}
		for i, value := range values {
			if path, found := culprit(value, t.Elem()); found {
				return join(fmt.Sprintf("[%d]", i), path), true
			}
		}
	case reflect.Map:
		var values map[string]json.RawMessage
		if json.Unmarshal(raw, &values) != nil {
			return "", false
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if path, found := culprit(values[key], t.Elem()); found {
				return join("["+key+"]", path), true
			}
		}
	}
	return "", false
}

// culpritField looks at the fields of an object.
func culpritField(raw []byte, values map[string]json.RawMessage, t reflect.Type) (path string, found bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			if path, found = culprit(raw, f.Type); found {
				return path, true
			}
			continue
		}
		if value, ok := values[name]; ok {
			if path, found = culprit(value, f.Type); found {
				return join(name, path), true
			}
		}
	}
	return "", false
}

// shapeOf tells the JSON shape that a Go type is read from.
func shapeOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	}
	return "number"
}

func shapeName(shape string) string {
	switch shape {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "string":
		return "a text"
	case "bool":
		return "a truth value"
	}
	return "a number"
}
