// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"reflect"

	"fairlead.io/fairlead/fsm/world"
)

// listOf gives the number of the World's field that lists objects of a type, by the type of pointers to them.
var listOf = func() map[reflect.Type]int {
	out := map[reflect.Type]int{}
	for i, f := range reflect.VisibleFields(reflect.TypeFor[world.World]()) {
		if f.Type.Kind() != reflect.Slice || f.Type.Elem().Kind() != reflect.Pointer {
			continue
		}
		if meta, ok := f.Type.Elem().Elem().FieldByName("Meta"); ok && meta.Anonymous {
			out[f.Type.Elem()] = i
		}
	}
	return out
}()

// put adds the object that value points to to a World.
func put(w *world.World, value any) {
	i, ok := listOf[reflect.TypeOf(value)]
	if !ok {
		panic(fmt.Sprintf("manifests: conversion made a %T", value)) // a World lists everything that conversion makes
	}
	list := reflect.ValueOf(w).Elem().Field(i)
	list.Set(reflect.Append(list, reflect.ValueOf(value)))
}

// grow makes room in an empty World for so many objects of each type, and no more: a World is kept for long.
func grow(w *world.World, counts map[reflect.Type]int) {
	for t, n := range counts {
		reflect.ValueOf(w).Elem().Field(listOf[t]).Grow(n)
	}
}

// toCanonical gives the object that value points to the form in which a sorted World has it.
func toCanonical(value any) {
	var w world.World
	put(&w, value)
	w.Sort()
}
