// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"fairlead.io/fairlead/internal/testkit"
)

// What a mapping merges it may have otherwise, wherever that stands, and of several the first counts; a key that it has twice itself is an error.
func TestMergedKeysMayBeOverridden(t *testing.T) {
	for name, c := range map[string]struct{ text, want, err string }{
		"before":       {"a: &a {x: 1, q: 2}\nb: {<<: *a, x: 3}\n", `{"a":{"q":2,"x":1},"b":{"q":2,"x":3}}`, ""},
		"behind":       {"a: &a {x: 1, q: 2}\nb: {x: 3, <<: *a}\n", `{"a":{"q":2,"x":1},"b":{"q":2,"x":3}}`, ""},
		"several":      {"a: &a {x: 1}\nb: &b {x: 2, q: 3}\nc:\n  <<: [*a, *b]\n  z: 4\n", `{"a":{"x":1},"b":{"q":3,"x":2},"c":{"q":3,"x":1,"z":4}}`, ""},
		"of a merged":  {"a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: *b, q: 3}\n", `{"a":{"x":1},"b":{"x":2},"c":{"q":3,"x":2}}`, ""},
		"in a list":    {"p: [&p {name: http, port: 80}, {<<: *p, name: alt, port: 81}]\n", `{"p":[{"name":"http","port":80},{"name":"alt","port":81}]}`, ""},
		"with aliases": {"l: &l [1]\na: &a {x: *l}\nb: {<<: *a, q: *l}\n", `{"a":{"x":[1]},"b":{"q":[1],"x":[1]},"l":[1]}`, ""},
		"twice":        {"a: &a {x: 1}\nb:\n  <<: *a\n  q: 1\n  q: 2\n", "", `yaml: line 5: key "q" already set in map`},
		"of a text":    {"a: &a x\nb: {<<: *a}\n", "", "yaml: line 2: << takes a mapping, or a list of mappings"},
	} {
		got, err := ToJSON([]byte(c.text))
		if string(got) != c.want || fmt.Sprint(err) != c.err && (err != nil || c.err != "") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// Writing out what is merged changes no other value: scalars stay what they are to who reads them next.
func TestPropertyWhatIsWrittenOutIsTheSame(t *testing.T) {
	scalars := []string{
		"yes", "no", "on", "~", "null", "", "5", `"5"`, "'yes'", "1e3", "0x1f", "010", "0o10", "1_000", "2001-01-01", "2001-01-01T00:00:00Z", "true", `"a: b"`, "1:30", ".inf", "-", "a b",
		"|\n    x\n    y", ">-\n    x\n    y", `"\n"`, "'a''b'", "!!str 5", "[a, 5]", "{x: yes}", "80", "-1", "1.50", "=", "<<", `"<<"`,
	}
	testkit.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		b.WriteString("base: &base\n  own: 1\nout:\n")
		n := rapid.IntRange(1, 6).Draw(rt, "keys")
		for i := range n {
			fmt.Fprintf(&b, "  k%d: %s\n", i, rapid.SampledFrom(scalars).Draw(rt, "scalar"))
		}
		text := b.String()
		want, err := yaml.YAMLToJSONStrict([]byte(text))
		if err != nil {
			return
		}
		got, err := ToJSON([]byte(text + "  <<: *base\n"))
		if err != nil || strings.Replace(string(got), `,"own":1}}`, "}}", 1) != string(want) {
			rt.Fatalf("%s\n%s\n%s\n%v", text, want, got, err)
		}
	})
}
