// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"reflect"

	"fairlead.io/fairlead/fsm/world"
)

// listOf gives the number of the World's field that lists objects of a type.
var listOf = func() map[reflect.Type]int {
	out := map[reflect.Type]int{}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[world.World]()) {
		if f.Type.Kind() != reflect.Slice || f.Type.Elem().Kind() != reflect.Struct {
			continue
		}
		if meta, ok := f.Type.Elem().FieldByName("Meta"); ok && meta.Anonymous {
			out[f.Type.Elem()] = i
		}
	}
	return out
}()

// list is where a World lists objects like value.
func list(w *world.World, value any) reflect.Value {
	i, ok := listOf[reflect.TypeOf(value)]
	if !ok {
		panic(fmt.Sprintf("manifests: conversion made a %T", value)) // a World lists everything that conversion makes
	}
	return reflect.ValueOf(w).Elem().Field(i)
}

// put adds an object to a World.
func put(w *world.World, value any) {
	l := list(w, value)
	l.Set(reflect.Append(l, reflect.ValueOf(value)))
}

// canonical gives an object as a sorted World has it, so that Worlds can share it.
func canonical(value any) any {
	var w world.World
	put(&w, value)
	w.Sort()
	return list(&w, value).Index(0).Interface()
}
