// SPDX-License-Identifier: Apache-2.0

// Package output prints the answers of commands: as a table for people, as JSON or YAML for programs.
//
// A command has one value that it prints. JSON and YAML show the value as encoding/json does and are stable;
// docs/cli.md documents them. The table shows what a person wants to see of it and may change.
// Start reading at Format.Print.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Format is how to print. It is a flag's value (pflag.Value).
type Format string

// The formats that exist.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

// Formats lists the names of all formats.
func Formats() []string { return []string{string(Table), string(JSON), string(YAML)} }

// String is the format's name.
func (f *Format) String() string { return string(*f) }

// Type is what the help calls the flag's value.
func (f *Format) Type() string { return strings.Join(Formats(), "|") }

// Set takes a name. Errors: it is none of Formats.
func (f *Format) Set(name string) error {
	if !slices.Contains(Formats(), name) {
		return fmt.Errorf("it is one of %s", strings.Join(Formats(), ", "))
	}
	*f = Format(name)
	return nil
}

// Tabler is a value that people see as text.
type Tabler interface {
	WriteTable(w io.Writer) error
}

// Print writes v in the format; everything at once, so that a failure midway prints nothing.
func (f *Format) Print(w io.Writer, v Tabler) error {
	text, err := f.render(v)
	if err != nil {
		return fmt.Errorf("print as %s: %w", *f, err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

func (f *Format) render(v Tabler) ([]byte, error) {
	var b bytes.Buffer
	if *f == Table {
		err := v.WriteTable(&b)
		return b.Bytes(), err
	}
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // "->" stands in histories
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	if *f == YAML {
		return yaml.JSONToYAML(b.Bytes())
	}
	return b.Bytes(), nil
}
