// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

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
	case shape == "string" && found != "object" && found != "array":
		remedy = "put quotes around it"
	}
	return world.Problem{Field: wrong.Field, Why: fmt.Sprintf("%s where %s belongs", shapeName(found), shapeName(shape)), Remedy: remedy}
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
	p := world.Problem{Field: culprit(raw, into), Why: strings.TrimPrefix(err.Error(), "json: "), Remedy: "write it as the API defines it"}
	if text, is := strings.CutPrefix(p.Why, "time: missing unit in duration "); is {
		p.Why, p.Remedy = text+" has no unit", "write one behind the number, as in 90s or 500ms"
	} else if text, is := strings.CutPrefix(p.Why, "time: invalid duration "); is {
		p.Why, p.Remedy = text+" is no length of time", "write a number and a unit, as in 90s or 500ms"
	}
	return p
}

// mostTries bounds how many fields are looked at for the one that cannot be read.
const mostTries = 500

// culprit finds the field of an object without which it can be read; empty if there is no single one.
func culprit(raw []byte, into any) string {
	var tree any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&tree) != nil {
		return ""
	}
	found, tries := "", 0
	readable := func() bool {
		text, err := json.Marshal(tree)
		if tries++; err != nil || tries > mostTries {
			return false
		}
		return kjson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(reflect.TypeOf(into).Elem()).Interface()) == nil
	}
	var look func(at any, path string)
	look = func(at any, path string) {
		switch at := at.(type) {
		case map[string]any:
			for _, key := range sortedKeys(at) {
				value := at[key]
				if delete(at, key); found == "" && scalar(value) && readable() {
					found = join(path, key)
				}
				if at[key] = value; found == "" {
					look(value, join(path, key))
				}
			}
		case []any:
			for i, value := range at {
				look(value, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	look(tree, "")
	return found
}

func scalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func sortedKeys(m map[string]any) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
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
