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

// list is where a World lists objects like the one that value points to.
func list(w *world.World, value any) reflect.Value {
	i, ok := listOf[reflect.TypeOf(value).Elem()]
	if !ok {
		panic(fmt.Sprintf("manifests: conversion made a %T", value)) // a World lists everything that conversion makes
	}
	return reflect.ValueOf(w).Elem().Field(i)
}

// put adds a copy of the object that value points to to a World.
func put(w *world.World, value any) {
	l := list(w, value)
	l.Set(reflect.Append(l, reflect.ValueOf(value).Elem()))
}

// grow makes room in an empty World for so many objects of each type, and no more: a World is kept for long.
func grow(w *world.World, counts map[reflect.Type]int) {
	for t, n := range counts {
		reflect.ValueOf(w).Elem().Field(listOf[t]).Grow(n)
	}
}

// each visits the objects that a World lists, by pointers to them.
func each(w *world.World, visit func(value any)) {
	for _, i := range listOf {
		l := reflect.ValueOf(w).Elem().Field(i)
		for j := range l.Len() {
			visit(l.Index(j).Addr().Interface())
		}
	}
}

// canonical gives the object that value points to as a sorted World has it, so that Worlds can share what is below it.
func canonical(value any) any {
	var w world.World
	put(&w, value)
	w.Sort()
	return list(&w, value).Index(0).Addr().Interface()
}
