// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
)

// Named is a struct that Schema is to describe, and a line about it for readers.
type Named struct {
	Value   any // a struct or a pointer to one
	Comment string
}

// Schema writes a proto3 file that reads what Append writes: one message for each named struct, in the order
// given, each followed by the structs that it contains and that no message before it did. Equal arguments give
// equal text.
//
// It fails with an *Error when a type cannot be encoded or a name cannot stand in a .proto file (an unnamed
// struct, two types or fields of one name), else with the error of w.
func Schema(w io.Writer, pkg string, messages []Named) error {
	s := schema{names: map[string]reflect.Type{}}
	s.printf("syntax = \"proto3\";\n\npackage %s;\n", pkg)
	for _, named := range messages {
		goType := reflect.TypeOf(named.Value)
		if goType.Kind() == reflect.Pointer {
			goType = goType.Elem()
		}
		t, err := typeFor(goType)
		if err != nil {
			return err
		}
		if err := s.message(t.root, named.Comment); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, s.text.String())
	return err
}

// schema is a file being written.
type schema struct {
	text  strings.Builder
	names map[string]reflect.Type
}

func (s *schema) printf(format string, args ...any) { fmt.Fprintf(&s.text, format, args...) }

func (s *schema) message(m *message, comment string) error {
	name := m.goType.Name()
	switch other, known := s.names[name]; {
	case known && other == m.goType:
		return nil
	case known:
		return &Error{Path: m.goType.String(), Why: fmt.Sprintf("%s has that name already", other)}
	case !isIdentifier(name):
		return &Error{Path: m.goType.String(), Why: "no name that a .proto file could use"}
	}
	s.names[name] = m.goType
	s.printf("\n")
	if comment != "" {
		s.printf("// %s\n", comment)
	}
	s.printf("message %s {\n", name)
	fields := map[string]bool{}
	for i := range m.fields {
		f := &m.fields[i]
		fieldName := snakeCase(f.name)
		if fields[fieldName] {
			return (&Error{Path: f.name, Why: "another field becomes " + fieldName + " too"}).within(name)
		}
		fields[fieldName] = true
		s.field(f, fieldName)
	}
	s.printf("}\n")
	for i := range m.fields {
		if inner := m.fields[i].elem.message; inner != nil {
			if err := s.message(inner, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *schema) field(f *field, name string) {
	label, proto, note := "", f.elem.proto, ""
	if f.repeated {
		label = "repeated "
	}
	if f.elem.message != nil {
		proto = f.elem.message.goType.Name()
	}
	if f.elem.note != "" {
		note = " // " + f.elem.note
	}
	if f.most != MaxText {
		note = cmp.Or(note, " //") + fmt.Sprintf(" at most %d bytes", f.most)
	}
	s.printf("  %s%s %s = %d;%s\n", label, proto, name, f.number, note)
}

// isIdentifier tells whether protobuf takes name for one; Go's own allow more letters, and generic types more signs.
func isIdentifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// snakeCase turns a Go name into a protobuf one: NodePort into node_port, LBInfo into lb_info.
func snakeCase(name string) string {
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		startsWord := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if startsWord {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
