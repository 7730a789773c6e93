// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/internal/testkit"
)

// leaf is a field of a configuration file: the way to it, and what is put there.
type leaf struct {
	path []string
	t    reflect.Type
	list bool
}

// leaves walks all fields of a file that have one word for a value.
func leaves(t reflect.Type, tag string, path []string) (out []leaf) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get(tag), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		of, list := f.Type, false
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			list = list || of.Kind() == reflect.Slice
			of = of.Elem()
		}
		here := append(append([]string(nil), path...), name)
		switch {
		case options == "inline":
			out = append(out, leaves(of, tag, path)...)
		case word(of):
			out = append(out, leaf{here, of, list})
		case of.Kind() == reflect.Struct && !list:
			out = append(out, leaves(of, tag, here)...)
		}
	}
	return out
}

func word(t reflect.Type) bool {
	return t == reflect.TypeFor[netip.Addr]() || t == reflect.TypeFor[netip.Prefix]() || t.Kind() != reflect.Struct && t.Kind() != reflect.Map
}

// wrong is a value that does not fit a type, as a file has it.
func wrong(t reflect.Type) string {
	if t.Kind() == reflect.String || t == reflect.TypeFor[netip.Addr]() || t == reflect.TypeFor[netip.Prefix]() {
		return "{a: b}"
	}
	if t == reflect.TypeFor[time.Duration]() {
		return "10"
	}
	return "tor"
}

// goWords are names of types and packages, which say nothing to those who write files.
var goWords = regexp.MustCompile(`!!|unmarshal|netip|time\.|into|ParseAddr|ParsePrefix|strconv|config\.|uint|int64|json|struct|\[\]|pki\.`)

// Each field of each file that people write: a value that does not fit is told with file, line, field and what may stand there, in no words of Go; and a name
// that is nearly that of a field with what was meant.
func TestPropertyWrongValuesAreToldByTheirField(t *testing.T) {
	files := []struct {
		name, tag string
		of        reflect.Type
		load      func(path string) error
	}{
		{"controller.yaml", "yaml", reflect.TypeFor[config.Controller](), func(p string) error { _, err := config.LoadController(p); return err }},
		{"agent.yaml", "yaml", reflect.TypeFor[config.Agent](), func(p string) error { _, err := config.LoadAgent(p, ""); return err }},
		{"context.yaml", "json", reflect.TypeFor[pki.Context](), func(p string) error { _, err := pki.LoadContext(p); return err }},
	}
	folder := t.TempDir()
	testkit.Check(t, func(t *rapid.T) {
		file := files[rapid.IntRange(0, len(files)-1).Draw(t, "file")]
		l := rapid.SampledFrom(leaves(file.of, file.tag, nil)).Draw(t, "field")
		misspelt := rapid.Bool().Draw(t, "misspelt")
		name, value := l.path[len(l.path)-1], wrong(l.t)
		if l.list {
			value = "[" + value + "]"
		}
		if misspelt {
			name += "x"
		}
		text := "# a comment\n"
		for i, outer := range l.path[:len(l.path)-1] {
			text += strings.Repeat("  ", i) + outer + ":\n"
		}
		text += strings.Repeat("  ", len(l.path)-1) + name + ": " + value + "\n"
		path := filepath.Join(folder, file.name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := file.load(path)
		if err == nil {
			t.Fatalf("%s was read", text)
		}
		said := strings.ReplaceAll(err.Error(), folder, "")
		field := strings.Join(append(append([]string(nil), l.path[:len(l.path)-1]...), name), ".")
		line := "line " + string(rune('0'+strings.Count(text, "\n"))) + ":"
		for _, want := range []string{file.name, line, field} {
			if !strings.Contains(said, want) {
				t.Fatalf("%s\n%q is missing in %s", text, want, said)
			}
		}
		if form := strings.Contains(said, "is not ") || strings.Contains(said, "are not "); !misspelt && !form {
			t.Fatalf("%s\nwhat belongs there is missing in %s", text, said)
		}
		if misspelt && !strings.Contains(said, "did you mean "+l.path[len(l.path)-1]) {
			t.Fatalf("%s\nwhat was meant is missing in %s", text, said)
		}
		if g := goWords.FindString(strings.ReplaceAll(said, field, "")); g != "" {
			t.Fatalf("%s\n%q is a word of Go: %s", text, g, said)
		}
	})
}
