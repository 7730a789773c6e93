// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Patch is a JSON patch (RFC 6902).
type Patch []PatchOperation

// PatchOperation is one step of a patch.
type PatchOperation struct {
	Op    string `json:"op"` // add (which replaces what is there) or remove
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// node is an object in a document that is edited. Its edits go into a patch, and into the document for later reads.
// Fields are found as encoding/json finds them, in any case; what is written is spelt properly.
type node struct {
	patch  *Patch
	path   string
	fields map[string]any
}

// spellings are the keys that mean a field, the proper one first.
func (n node) spellings(name string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(n.fields)) {
		if key != name && strings.EqualFold(key, name) {
			keys = append(keys, key)
		}
	}
	if _, ok := n.fields[name]; ok {
		keys = slices.Insert(keys, 0, name)
	}
	return keys
}

func (n node) get(name string) any {
	if keys := n.spellings(name); len(keys) > 0 {
		return n.fields[keys[0]]
	}
	return nil
}

// child is the object in a field; it has no fields if there is none.
func (n node) child(name string) (node, bool) {
	keys := n.spellings(name)
	if len(keys) == 0 {
		return node{}, false
	}
	fields, ok := n.fields[keys[0]].(map[string]any)
	return node{n.patch, n.path + "/" + escape(keys[0]), fields}, ok
}

// make is the object in a field, made if there is none.
func (n node) make(name string) node {
	if c, ok := n.child(name); ok {
		return c
	}
	n.set(name, map[string]any{})
	n.fields[name] = map[string]any{} // the one in the patch stays empty
	c, _ := n.child(name)
	return c
}

// set gives a field a value.
func (n node) set(name string, value any) {
	for _, key := range n.spellings(name) {
		if key != name {
			n.remove(key)
		}
	}
	n.put(name, value)
}

// drop removes a field, however it is spelt.
func (n node) drop(name string) {
	for _, key := range n.spellings(name) {
		n.remove(key)
	}
}

// put gives a key a value. Unlike fields, keys of maps are what they are.
func (n node) put(key string, value any) {
	*n.patch = append(*n.patch, PatchOperation{Op: "add", Path: n.path + "/" + escape(key), Value: value})
	n.fields[key] = value
}

func (n node) remove(key string) {
	*n.patch = append(*n.patch, PatchOperation{Op: "remove", Path: n.path + "/" + escape(key)})
	delete(n.fields, key)
}

// each visits the objects in the list of a field.
func (n node) each(name string, visit func(node)) {
	keys := n.spellings(name)
	if len(keys) == 0 {
		return
	}
	list, _ := n.fields[keys[0]].([]any)
	for i, item := range list {
		if fields, ok := item.(map[string]any); ok {
			visit(node{n.patch, n.path + "/" + escape(keys[0]) + "/" + strconv.Itoa(i), fields})
		}
	}
}

// add appends a value to the list of a field, which is made if there is none.
func (n node) add(name string, value any) {
	list, ok := n.get(name).([]any)
	if !ok {
		n.set(name, []any{value})
		return
	}
	key := n.spellings(name)[0]
	*n.patch = append(*n.patch, PatchOperation{Op: "add", Path: n.path + "/" + escape(key) + "/-", Value: value})
	n.fields[key] = append(slices.Clip(list), value)
}

func escape(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
