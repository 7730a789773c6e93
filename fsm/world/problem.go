// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"strings"
)

// String is one line for a person: "file:line: Kind name: field: why (remedy)".
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Object != (Ref{}) {
		b.WriteString(p.Object.String() + ": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Why)
	if p.Remedy != "" {
		b.WriteString(" (" + p.Remedy + ")")
	}
	return b.String()
}

// rank orders severities, worst first.
func (s Severity) rank() int {
	switch s {
	case Failed:
		return 0
	case Degraded:
		return 1
	}
	return 2
}

// Secret is a text that is never shown: formatting, logging or marshalling it gives only a placeholder.
type Secret string

const hidden = "(hidden)"

// String hides the secret; an empty one stays empty, so that "none" can be told from "some".
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// MarshalText hides the secret from JSON and from structured logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal gives the text itself, for the one place that must use it.
func (s Secret) Reveal() string { return string(s) }
