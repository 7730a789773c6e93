// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm/world"
)

// Texts says which text of an object the record cannot take, as one that is not UTF-8: nothing else than the object itself shall wait for it
// to be mended. values are pointers to what the object was converted to; what nobody reads of it is left to others.
func Texts(ref world.Ref, object any, values ...any) []world.Problem {
	for _, v := range values {
		if text, why, found := world.Unfit(v); found {
			return []world.Problem{{
				Severity: world.Failed, Object: ref, Field: fieldOf(object, text), Why: why, Remedy: "write UTF-8, and no more than that",
			}}
		}
	}
	return nil
}

// fieldOf finds the field that a text came from, as manifests spell it: the first one that cannot be taken and has the text in it, or is part
// of it, else the first one at all.
func fieldOf(object any, text string) string {
	first := ""
	for path, s := range textsOf(reflect.ValueOf(object), "") {
		if world.UnfitText(s, world.MaxText) == "" {
			continue
		}
		if strings.Contains(text, s) || strings.Contains(s, text) {
			return path
		}
		if first == "" {
			first = path
		}
	}
	return first
}

// textsOf yields the texts in an object with their paths.
func textsOf(v reflect.Value, path string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) { eachText(v, path, yield) }
}

func eachText(v reflect.Value, path string, yield func(string, string) bool) bool {
	switch v.Kind() {
	case reflect.String:
		return yield(path, v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || eachText(v.Elem(), path, yield)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !eachText(v.Index(i), fmt.Sprintf("%s[%d]", path, i), yield) {
				return false
			}
		}
	case reflect.Map:
		return eachEntry(v, path, yield)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.IsExported() && name != "-" && !eachText(v.Field(i), below(path, name), yield) {
				return false
			}
		}
	}
	return true
}

// eachEntry yields the texts of a map, in order of its keys, and those keys.
func eachEntry(v reflect.Value, path string, yield func(string, string) bool) bool {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		at := fmt.Sprintf("%s[%s]", path, strings.ToValidUTF8(key.String(), "?"))
		if !yield(at, key.String()) || !eachText(v.MapIndex(key), at, yield) {
			return false
		}
	}
	return true
}

// below is the path of a field; of one that is inlined it has no name.
func below(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}
