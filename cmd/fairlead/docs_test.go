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
	"fairlead.io/fairlead/sim"
	"fairlead.io/fairlead/sim/whatif"
)

const cliPage = "../../docs/cli.md"

// documents has a document of each kind, for its fields.
func documents() map[string]any {
	return map[string]any{
		"services": records.Service{}, "pools": records.Pool{}, "allocations": records.Allocation{},
		"drivers": records.Driver{}, "loadbalancers": records.LoadBalancer{}, "bindings": records.Binding{}, "operations": records.Operation{},
		"routes": records.Route{}, "peers": records.Peer{}, "advertisements": records.Advertisement{}, "l2advertisements": records.L2Advertisement{},
		"nodes": records.Node{}, "hosts": records.Host{}, "tunnels": records.Tunnel{}, "nodeconfigs": records.NodeConfig{}, "leases": records.Lease{},
		"policies": records.Policy{}, "holds": records.Hold{}, "drains": records.Drain{}, "revocations": records.Revocation{}, "moves": records.Move{}, "members": records.Member{},
		"sources": records.Source{}, "group": records.Group{},
	}
}

// simAnswers has what each way of asking the simulator prints.
func simAnswers() []struct {
	command string
	answer  any
} {
	return []struct {
		command string
		answer  any
	}{
		{"`sim run`, `sim replay`", sim.Report{}}, {"`sim run --manifests`", whatif.Report{}}, {"`sim list`", simParts{}},
	}
}

func TestTheSimulatorsAnswersAreDocumentedWithTheirFields(t *testing.T) {
	var b strings.Builder
	b.WriteString("| command | JSON |\n|---|---|\n")
	for _, x := range simAnswers() {
		fmt.Fprintf(&b, "| %s | %s |\n", x.command, fields(reflect.TypeOf(x.answer)))
	}
	documented(t, "sim", b.String())
}

// What is really printed has the fields that are documented, with the types that they have for everybody.
func TestTheSimulatorPrintsTheFieldsThatAreDocumented(t *testing.T) {
	page, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "--seeds", "3..5", "--json"}, {"replay", "--seed", "3", "-o", "json"}, {"list", "-o", "json"}} {
		got := (&actor{breaks: map[uint64]bool{3: true}}).run(t, t.Context(), args...)
		var answer map[string]any
		if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || len(answer) < 2 {
			t.Fatalf("%v: %v: %q", args, err, got.stdout)
		}
		delete(answer, "checks") // by rule
		for _, name := range keys(answer) {
			if !regexp.MustCompile("(?m)^\\| `sim .*\\b" + name + "\\b").Match(page) {
				t.Errorf("%v: field %s is not in %s", args, name, cliPage)
			}
		}
		for name, value := range answer {
			if value == nil {
				t.Errorf("%v: %s is null", args, name)
			}
		}
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
		if inner.Kind() == reflect.Map { // by name
			name, inner = name+"{}", inner.Elem()
		}
		switch {
		case name == "-":
			continue
		case field.Anonymous: // its fields stand among the others
			names = append(names, fields(inner))
			continue
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
	documented(t, "kinds", b.String())
}

// documented compares a part of the page with what it should be.
func documented(t *testing.T, part, want string) {
	t.Helper()
	page, err := os.ReadFile(cliPage)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+part+" -->\n", "<!-- /"+part+" -->\n"
	before, rest, _ := strings.Cut(string(page), begin)
	have, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no part between %q and %q", cliPage, begin, end)
	}
	if *update {
		if err := os.WriteFile(cliPage, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Errorf("the %s in %s differ (go test -update writes them anew); want:\n%s", part, cliPage, want)
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
