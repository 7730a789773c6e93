// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/spelling"
)

// unknownField turns what the strict decoder says about a key of an object into a problem. The object is used without it, as kubectl does, but
// the user may have meant something by it. Of an advertisement that is not to be guessed: what narrows it down may be misspelt, and it would be
// about all addresses without.
func unknownField(ref world.Ref, err error, of reflect.Type) world.Problem {
	p := world.Problem{Severity: world.Degraded, Object: ref, Why: err.Error()}
	var at kjson.FieldError
	if errors.As(err, &at) {
		p.Field = at.FieldPath()
		p.Why = strings.TrimSpace(strings.TrimSuffix(p.Why, strconv.Quote(p.Field)))
	}
	parent, name := "", p.Field
	if i := strings.LastIndexByte(p.Field, '.'); i >= 0 {
		parent, name = p.Field[:i], p.Field[i+1:]
	}
	meant := spelling.Meant(name, fieldsAt(of, parent))
	if p.Remedy = "check its spelling; it is left out" + meant; meant == "" {
		return p
	}
	if ref.Kind == world.KindAdvertisement || ref.Kind == world.KindL2Advert {
		p.Severity, p.Remedy = world.Failed, "check its spelling"+meant
	}
	return p
}

// fieldsAt lists the names of the fields of what a path leads to in objects of a type; none where it leads to no object of fixed fields.
func fieldsAt(t reflect.Type, path string) (names []string) {
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		name, _, _ = strings.Cut(name, "[")
		f, ok := fieldOf(t, name)
		if !ok {
			return nil
		}
		t = f
	}
	if t = plain(t); t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case name == "" && f.Anonymous:
			names = append(names, fieldsAt(f.Type, "")...)
		case name != "" && name != "-":
			names = append(names, name)
		}
	}
	return names
}

// fieldOf is the type of a field by its name in JSON.
func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	if t = plain(t); t.Kind() != reflect.Struct {
		return nil, false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return f.Type, true
		}
		if tag == "" && f.Anonymous {
			if in, ok := fieldOf(f.Type, name); ok {
				return in, true
			}
		}
	}
	return nil, false
}

// plain is what pointers and lists are of.
func plain(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}
