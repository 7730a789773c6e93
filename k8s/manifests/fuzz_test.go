// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"fairlead.io/fairlead/k8s/alike"
)

// fuzzedBytes bounds what is drawn: what a larger file can do beside, it does by its size.
const fuzzedBytes = 8 << 10

// FuzzManifests reads a file: whatever it holds, each problem says why and on which line of the file, each object has a name, and the same
// bytes are the same objects.
func FuzzManifests(f *testing.F) {
	examples, err := filepath.Glob("../../examples/quickstart/*.yaml")
	if err != nil || len(examples) == 0 {
		f.Fatal(examples, err)
	}
	for _, name := range examples {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		"a: &a [1]\nb: *a\n", "kind: List\napiVersion: v1\nitems: [{}, {kind: Service}]\n", "---\n...\n--- x\n", "{\"kind\": \"Service\", \"kind\": \"Node\"}",
		"apiVersion: v1\nkind: Service\nmetadata: {name: x, annotations: {\"fairlead.io/loadBalancerIPs\": \"\\xff\"}}\nspec: {ports: [{port: 99999999999}]}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > fuzzedBytes {
			return
		}
		got := decode("file", data, new(alike.Table), rules{})
		lines := 1 + bytes.Count(data, []byte("\n"))
		problems := got.problems
		if got.broken != nil {
			problems = append(problems, *got.broken)
		}
		for _, o := range got.objects {
			if o.ref().Name == "" || int(o.line) < 1 || int(o.line) > lines {
				t.Errorf("object %s on line %d of %d", o.ref(), o.line, lines)
			}
			problems = append(problems, o.problems()...)
		}
		for _, p := range problems {
			if p.Why == "" || p.File != "file" || p.Line < 1 || p.Line > lines {
				t.Errorf("line %d of %d: %+v", p.Line, lines, p)
			}
		}
		again := decode("file", data, new(alike.Table), rules{})
		if len(again.objects) != len(got.objects) || (again.broken == nil) != (got.broken == nil) || len(again.problems) != len(got.problems) {
			t.Errorf("first %d objects, %d problems, then %d, %d", len(got.objects), len(got.problems), len(again.objects), len(again.problems))
		}
	})
}
