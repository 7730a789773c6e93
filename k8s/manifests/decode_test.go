// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/safeyaml"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/alike"
	"fairlead.io/fairlead/k8s/convert"
)

// TestDecodeScripts shows what manifests become: the values, without the fields at their zero value, and what is wrong
// with them, on which line.
func TestDecodeScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata/decode", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			got := decode("file", []byte(d.Input), new(alike.Table), rules{})
			var b strings.Builder
			for _, o := range got.objects {
				if !o.usable() {
					fmt.Fprintf(&b, "unusable: %s\n", o.ref())
				}
				for v := range o.values {
					fmt.Fprintf(&b, "%s %s\n", reflect.TypeOf(v).Elem().Name(), plainValue(t, v))
				}
				for _, p := range o.problems() {
					fmt.Fprintf(&b, "%s: %s\n", p.Severity, p)
				}
			}
			for _, p := range got.problems {
				fmt.Fprintf(&b, "%s: %s\n", p.Severity, p)
			}
			if got.broken != nil {
				fmt.Fprintf(&b, "broken: %s\n", got.broken)
			}
			return b.String()
		})
	})
}

// plainValue renders a value without what is at its zero.
func plainValue(t *testing.T, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(withoutZeros(tree))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`"`, "", ",", " ", "{", "(", "}", ")").Replace(string(text))
}

func withoutZeros(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, field := range v {
			switch field := withoutZeros(field); field {
			case nil, false, 0.0, "":
				delete(v, key)
			default:
				v[key] = field
			}
		}
		if len(v) == 0 {
			return nil
		}
		return v
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = withoutZeros(v[i])
		}
		return &v
	}
	return v
}

func TestLineOfFindsTheField(t *testing.T) {
	t.Parallel()
	text := "# comment\nmetadata:\n  annotations:\n    fairlead.io/x: a\n  name: web\nspec:\n  externalIPs:\n  - 1\n  -   2\n  ports:\n  - name: a\n    port: 1\n  - name: b\n    port: 2\ndata:\n  config_bgp.toml: |\n    x\n"
	d := document{Document: safeyaml.Document{Line: 10, Text: []byte(text)}}
	for field, want := range map[string]int{
		"":                                    11,
		"metadata.name":                       14,
		"metadata.annotations[fairlead.io/x]": 13,
		"metadata.annotations[fairlead.io/y]": 12,
		"spec.externalIPs[1]":                 18,
		"spec.externalIPs[7]":                 16,
		"spec.ports[1].port":                  23,
		"spec.ports[1].nodePort":              22,
		"spec.selector":                       15,
		"data.config_bgp.toml":                25,
		"status.x":                            11,
	} {
		if got := d.lineOf(field); got != want {
			t.Errorf("%q is on line %d, want %d", field, got, want)
		}
	}
}

// Reading five thousand Services must not take a multiple of what parsing them takes: lines are looked up on demand.
func TestBigFileIsReadInTime(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	list.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	const n = 2000
	for i := range n {
		fmt.Fprintf(&list, "- apiVersion: v1\n  kind: Service\n  metadata: {name: s%d}\n  spec: {type: LoadBalancer, externalIPs: [198.18.%d.%d], ports: [{port: 80}]}\n", i, i/250, i%250)
	}
	got := decode("list.yaml", []byte(list.String()), new(alike.Table), rules{})
	if len(got.objects) != n || got.objects[n-1].line != int32(4+4*(n-1)) {
		t.Fatalf("%d objects, the last on line %d", len(got.objects), got.objects[len(got.objects)-1].line)
	}
	if got.objects[0].ref().Kind != world.KindService {
		t.Fatal(got.objects[0].ref())
	}
}

// Whatever a file was cut off at or damaged to: it is read without a crash, every problem points into the file, and no
// object is both used and unusable.
func TestPropertyDamagedFilesAreReadWithoutHarm(t *testing.T) {
	t.Parallel()
	var whole []byte
	for _, name := range []string{"web.yaml", "nodes.yaml", "pool.yaml"} {
		text, err := os.ReadFile("../../examples/quickstart/" + name)
		if err != nil {
			t.Fatal(err)
		}
		whole = append(append(whole, text...), "---\n"...)
	}
	testkit.Check(t, func(t *rapid.T) {
		text := slices.Clone(whole[rapid.IntRange(0, len(whole)).Draw(t, "from"):])
		text = text[:rapid.IntRange(0, len(text)).Draw(t, "to")]
		for range rapid.IntRange(0, 4).Draw(t, "damages") {
			if len(text) == 0 {
				break
			}
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			piece := rapid.SampledFrom([]string{"", "\x00", "\t", ":", "- ", "[", "*x", "&x ", "\n", "---\n", "...\n", "null", "1e99", "\xff", "!!binary "}).Draw(t, "piece")
			text = slices.Replace(text, at, min(at+rapid.IntRange(0, 3).Draw(t, "over"), len(text)), []byte(piece)...)
		}
		got := decode("file", text, new(alike.Table), rules{})
		problems := slices.Clone(got.problems)
		for _, o := range got.objects {
			problems = append(problems, o.problems()...)
			if o.usable() != convert.Usable(o.problems()) || o.ref().Name == "" {
				t.Fatalf("%+v", o)
			}
		}
		if got.broken != nil {
			problems = append(problems, *got.broken)
		}
		lines := strings.Count(string(text), "\n") + 1
		for _, p := range problems {
			if p.File != "file" || p.Line < 1 || p.Line > lines+1 || p.Why == "" {
				t.Fatalf("of %d lines: %+v", lines, p)
			}
		}
	})
}

func TestAliasesThatExplodeAreRefused(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 12 {
		fmt.Fprintf(&text, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	if got := decode("file", []byte(text.String()), new(alike.Table), rules{}); got.broken == nil || !strings.Contains(got.broken.Why, "write out what they stand for") {
		t.Fatalf("%+v", got)
	}
}

// A manifest with a text that the record cannot take is refused alone, with file, line and field.
func TestTextThatIsNotTakenIsRefused(t *testing.T) {
	t.Parallel()
	manifest := func(name, key string) string {
		return "apiVersion: v1\nkind: Service\nmetadata:\n  name: " + name + "\n  annotations:\n    fairlead.io/allow-shared-ip: " + key +
			"\nspec:\n  type: LoadBalancer\n  ports: [{port: 80}]\n---\n"
	}
	got := decode("file", []byte(manifest("good", "k")+manifest("bad", strings.Repeat("x", 5000))+manifest("fine", "k")), new(alike.Table), rules{})
	if len(got.objects) != 3 || !got.objects[0].usable() || got.objects[1].usable() || !got.objects[2].usable() {
		t.Fatalf("%+v", got)
	}
	p := got.objects[1].problems()[0]
	if p.Field != "metadata.annotations[fairlead.io/allow-shared-ip]" || p.File != "file" || p.Line == 0 || p.Severity != world.Failed {
		t.Fatalf("%+v", p)
	}
	got = decode("file", []byte(strings.ReplaceAll(manifest("bad", strings.Repeat("x", world.MaxText+1)), "allow-shared-ip", "address-pool")), new(alike.Table), rules{})
	if got.objects[0].usable() || got.objects[0].problems()[0].Field != "metadata.annotations[fairlead.io/address-pool]" {
		t.Fatalf("%+v", got.objects[0].problems())
	}
}
