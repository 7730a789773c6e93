// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"cmp"
	"encoding"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"

	"fairlead.io/fairlead/internal/spelling"
)

// Explain says what is wrong with a document that could not be read into a value, for those who write it: in which line, in which field, and what may
// stand there. Fields are named by a tag, "yaml" for Decode and "json" for Unmarshal. Where nothing of that kind is wrong it gives err.
func Explain(text []byte, into any, tag string, err error) error {
	if root := Root(text); root != nil {
		e := explainer{tag: tag}
		if e.value(root, reflect.TypeOf(into), ""); e.found != nil {
			return e.found
		}
	}
	return err
}

// explainer walks a document beside the type that it is read into, until something does not fit.
type explainer struct {
	tag   string
	found error
}

func (e *explainer) fault(n *yamlv3.Node, field, why string, args ...any) {
	where := ""
	if field != "" {
		where = field + ": "
	}
	e.found = cmp.Or(e.found, fmt.Errorf("line %d: %s%s", n.Line, where, fmt.Sprintf(why, args...)))
}

func (e *explainer) value(n *yamlv3.Node, t reflect.Type, field string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	if n.Kind == yamlv3.ScalarNode && n.Tag == "!!null" { // as if it were not there
		return
	}
	if what := known(t); what != "" {
		if n.Kind != yamlv3.ScalarNode {
			e.fault(n, field, "%s, which are not %s", shape(n), what)
		} else if n.Decode(reflect.New(t).Interface()) != nil {
			e.fault(n, field, "%q is not %s", n.Value, what)
		}
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		if n.Kind != yamlv3.MappingNode {
			e.fault(n, field, "%s where these fields belong: %s", shape(n), strings.Join(names(e.fields(t)), ", "))
			return
		}
		e.mapping(n, e.fields(t), field)
	case reflect.Slice, reflect.Array:
		if n.Kind != yamlv3.SequenceNode {
			e.fault(n, field, "%s where a list belongs; write [...], or a line beginning with - for each", shape(n))
			return
		}
		for i, element := range n.Content {
			e.value(element, t.Elem(), fmt.Sprintf("%s[%d]", field, i))
		}
	case reflect.Map:
		if n.Kind != yamlv3.MappingNode {
			e.fault(n, field, "%s where names with values belong", shape(n))
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			e.value(n.Content[i+1], t.Elem(), join(field, n.Content[i].Value))
		}
	}
}

func (e *explainer) mapping(n *yamlv3.Node, fields map[string]reflect.Type, field string) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			continue
		}
		t, is := fields[key.Value]
		switch {
		case !is:
			e.fault(key, join(field, key.Value), "there is no such field%s", cmp.Or(spelling.Meant(key.Value, names(fields)), "; it is one of "+strings.Join(names(fields), ", ")))
		case seen[key.Value]:
			e.fault(key, join(field, key.Value), "it is there twice; leave one out")
		default:
			e.value(value, t, join(field, key.Value))
		}
		seen[key.Value] = true
	}
}

// fields are those of a struct by their names in documents, those of structs that are written as if their fields were its own included.
func (e *explainer) fields(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get(e.tag), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
		case options == "inline" || f.Anonymous && name == "":
			for name, t := range e.fields(f.Type) {
				out[name] = t
			}
		default:
			out[cmp.Or(name, strings.ToLower(f.Name))] = f.Type
		}
	}
	return out
}

func names(fields map[string]reflect.Type) []string {
	var out []string
	for name := range fields {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func join(field, name string) string {
	if field == "" {
		return name
	}
	return field + "." + name
}

// known says what a value of a type is that is written as one word; empty for one that is written otherwise.
func known(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return "a length of time; write a number with its unit, such as 90s, 500ms or 1h30m"
	case reflect.TypeFor[netip.Addr]():
		return "an address; write one such as 192.0.2.1 or 2001:db8::1, without a prefix length"
	case reflect.TypeFor[netip.Prefix]():
		return "a prefix; write an address and a length, such as 192.0.2.0/24 or 2001:db8::/64"
	case reflect.TypeFor[netip.AddrPort]():
		return "an address with a port; write one such as 192.0.2.1:7443 or \"[2001:db8::1]:7443\""
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text; put it in quotes"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of at most %d", int64(1)<<(t.Bits()-1)-1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number from 0 to %d", ^uint64(0)>>(64-t.Bits()))
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "what belongs here"
	}
	return ""
}

// shape names what stands in a document.
func shape(n *yamlv3.Node) string {
	switch n.Kind {
	case yamlv3.MappingNode:
		return "fields"
	case yamlv3.SequenceNode:
		return "elements of a list"
	}
	return fmt.Sprintf("%q", n.Value)
}
