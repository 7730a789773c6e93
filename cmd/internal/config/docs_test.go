// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"fairlead.io/fairlead/cmd/internal/config"
)

// TestEveryFieldIsDocumented looks for each field in the page on its file; one within others by its own name, since
// pages show those in lists and in YAML.
func TestEveryFieldIsDocumented(t *testing.T) {
	for page, root := range map[string]any{"controller.md": config.Controller{}, "agents.md": config.Agent{}} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range fieldsOf(reflect.TypeOf(root), "") {
			name := field[strings.LastIndex(field, ".")+1:]
			if !regexp.MustCompile(`[{ .` + "`" + `]` + name + "[`:,}[]").Match(text) {
				t.Errorf("docs/%s does not say what %s is", page, field)
			}
		}
	}
}

// fieldsOf lists the fields that a file may have, those within others after a dot.
func fieldsOf(of reflect.Type, within string) (out []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		ours := inner.Kind() == reflect.Struct && inner.PkgPath() == of.PkgPath()
		switch {
		case option == "inline":
			out = append(out, fieldsOf(inner, within)...)
		case name == "-":
		case ours:
			out = append(out, fieldsOf(inner, within+name+".")...)
		default:
			out = append(out, within+name)
		}
	}
	return out
}
