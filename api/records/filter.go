// SPDX-License-Identifier: Apache-2.0

package records

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// documents has a document of each kind, by its name.
func documents() map[string]any {
	return map[string]any{
		"services": Service{}, "pools": Pool{}, "allocations": Allocation{}, "drivers": Driver{}, "loadbalancers": LoadBalancer{}, "bindings": Binding{},
		"operations": Operation{}, "routes": Route{}, "peers": Peer{}, "advertisements": Advertisement{}, "l2advertisements": L2Advertisement{}, "nodes": Node{}, "hosts": Host{}, "tunnels": Tunnel{},
		"nodeconfigs": NodeConfig{}, "leases": Lease{}, "policies": Policy{}, Registers: Register{}, "holds": Hold{}, "drains": Drain{}, "moves": Move{},
		"revocations": Revocation{}, "members": Member{}, "sources": Source{}, "group": Group{},
	}
}

// filters are the fields of a kind's documents that a filter can be about: those with plain values, or lists of them.
func (k Kind) filters() map[string]reflect.StructField {
	out := map[string]reflect.StructField{}
	t := reflect.TypeOf(documents()[k.Name])
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type = plain(f.Type); f.Type.Kind() != reflect.Struct && f.Type.Kind() != reflect.Map {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			out[name] = f
		}
	}
	return out
}

// plain is what a type is of, without lists and pointers around it.
func plain(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// Fields lists what a filter can be about, in order.
func (k Kind) Fields() []string { return slices.Sorted(maps.Keys(k.filters())) }

// Values lists all values that a field can have, if they are few; nil for a field that has any. An empty value asks for what has none.
func (k Kind) Values(field string) []string {
	f, known := k.filters()[field]
	switch {
	case !known:
		return nil
	case f.Type.Kind() == reflect.Bool:
		return []string{"false", "true"}
	}
	if of := f.Tag.Get("oneof"); of != "" {
		return strings.Split(of, ",")
	}
	return nil
}

// CheckFilter says what of a filter matches no document there could be, and what would; both empty if all of it may match. Meant is what to say of
// a word that is not one of some.
func (k Kind) CheckFilter(filter map[string]string, meant func(word string, words []string) string) (why, remedy string) {
	fields := k.filters()
	for _, name := range slices.Sorted(maps.Keys(filter)) {
		value := filter[name]
		f, known := fields[name]
		if !known {
			return fmt.Sprintf("no document of %s has a plain value %q", k.Name, name) + meant(name, k.Fields()), "filter by one of " + strings.Join(k.Fields(), ", ")
		}
		if value == "" {
			continue
		}
		if values := k.Values(name); values != nil && !slices.Contains(values, value) {
			return fmt.Sprintf("%s is never %q", name, value) + meant(value, values), "filter for one of " + strings.Join(values, ", ")
		}
		if number(f.Type.Kind()) {
			if _, err := strconv.ParseFloat(value, 64); err != nil {
				return fmt.Sprintf("%s is a number, and never %q", name, value), "filter for a number"
			}
		}
	}
	return "", ""
}

func number(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Float64 }
