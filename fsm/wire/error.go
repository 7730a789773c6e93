// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// ErrUnknownField tells that an encoding has a field number that the Go type lacks.
var ErrUnknownField = errors.New("unknown field")

// Error says what is wrong with a type, a value or its bytes, and where.
type Error struct {
	Path string // the Go field, from the outermost type inwards: "Route.NextHops[2].Node"
	Why  string

	cause error // ErrUnknownField or nil
}

// Error returns "wire: Path: Why".
func (e *Error) Error() string { return "wire: " + e.Path + ": " + e.Why }

// Unwrap lets errors.Is find ErrUnknownField.
func (e *Error) Unwrap() error { return e.cause }

func fault(format string, args ...any) *Error {
	return &Error{Why: fmt.Sprintf(format, args...)}
}

// within returns e with its path put below step, a field, a type or an index such as "[2]".
func (e *Error) within(step string) *Error {
	switch {
	case e.Path == "":
		e.Path = step
	case strings.HasPrefix(e.Path, "["):
		e.Path = step + e.Path
	default:
		e.Path = step + "." + e.Path
	}
	return e
}

// nameOf is how paths call a struct type; not all have a name.
func nameOf(t reflect.Type) string {
	if t.Name() == "" {
		return "struct"
	}
	return t.Name()
}
