// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"fairlead.io/fairlead/api/records"
)

const cliPage = "../../docs/cli.md"

// documents has a document of each kind, for its fields.
func documents() map[string]any {
	return map[string]any{
		"services": records.Service{}, "pools": records.Pool{}, "allocations": records.Allocation{},
		"loadbalancers": records.LoadBalancer{}, "bindings": records.Binding{}, "operations": records.Operation{},
		"routes": records.Route{}, "peers": records.Peer{}, "advertisements": records.Advertisement{},
		"nodes": records.Node{}, "nodeconfigs": records.NodeConfig{}, "leases": records.Lease{},
		"policies": records.Policy{}, "holds": records.Hold{}, "members": records.Member{},
		"sources": records.Source{}, "group": records.Group{},
	}
}

// fields names the JSON fields of a struct, those within objects in braces.
func fields(t reflect.Type) string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Slice && inner.Elem().Kind() != reflect.Uint8 { // bytes are a text
			name, inner = name+"[]", inner.Elem()
		}
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[records.Revision]() {
			name += " {" + fields(inner) + "}"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

func TestEveryKindIsDocumentedWithItsFields(t *testing.T) {
	var b strings.Builder
	b.WriteString("| kind | also | fields |\n|---|---|---|\n")
	for _, kind := range records.Kinds() {
		document, ok := documents()[kind.Name]
		if !ok {
			t.Fatalf("no document of kind %s is known here", kind.Name)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", kind.Name, strings.Join(kind.Aliases, ", "), fields(reflect.TypeOf(document)))
	}
	page, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- kinds -->\n", "<!-- /kinds -->\n"
	before, rest, _ := strings.Cut(string(page), begin)
	have, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no part between %q and %q", cliPage, begin, end)
	}
	if *update {
		if err := os.WriteFile(cliPage, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != b.String() {
		t.Errorf("the kinds in %s differ (go test -update writes them anew); want:\n%s", cliPage, b.String())
	}
}

func TestEveryFieldThatIsPrintedIsDocumented(t *testing.T) {
	page, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/raft-*-json.golden")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var answer map[string]any
		if err := json.Unmarshal(data, &answer); err != nil {
			t.Fatal(err)
		}
		for _, name := range keys(answer) {
			if !regexp.MustCompile("`[^`\\n]*\\b" + name + "\\b[^`\\n]*`").Match(page) { // as code
				t.Errorf("%s: field %s is not in %s", file, name, cliPage)
			}
		}
	}
}

// keys gives the names of all fields, those of objects within lists, too.
func keys(value any) []string {
	var names []string
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			names = append(names, name)
			names = append(names, keys(inner)...)
		}
	case []any:
		for _, element := range v {
			names = append(names, keys(element)...)
		}
	}
	return names
}
