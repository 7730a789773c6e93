// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/alike"
)

// However objects are written one behind the other, and in whatever encoding, all of them count or the file is broken as a whole. What people and
// their tools write counts.
func TestPropertyAllDocumentsOfAFileCountOrNone(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(rt, "objects")
		var values []string
		for i := range n {
			o := map[string]any{
				"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": fmt.Sprint("s", i), "namespace": "default"},
				"spec": map[string]any{"ports": []any{map[string]any{"port": 80 + i, "name": "schön-🜲"}}},
			}
			text, err := json.Marshal(o)
			if rapid.Bool().Draw(rt, "pretty") {
				text, err = json.MarshalIndent(o, "", " ")
			}
			if err != nil {
				rt.Fatal(err)
			}
			values = append(values, string(text))
		}
		between := rapid.SampledFrom([]string{"\n", "", " ", "\n\n", "\n---\n", "\n--- ", "\n...\n---\n", "\n# a\n"}).Draw(rt, "between")
		text := strings.Join(values, between)
		if block := rapid.IntRange(0, n).Draw(rt, "blocks"); strings.Contains(between, "---\n") { // some of them as people write them
			for i := range block {
				values[i] = fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata:\n  name: s%d\nspec:\n  ports:\n  - port: 80\n", i)
			}
			text = strings.Join(values, between)
		}
		end := rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\r"}).Draw(rt, "end of lines")
		text = strings.ReplaceAll(text, "\n", end)
		data := encoded(text, rapid.SampledFrom([]string{"UTF-8", "with a mark", "UTF-16LE", "UTF-16BE"}).Draw(rt, "encoding"))

		got := decode("file", data, new(alike.Table), rules{})
		if got.broken == nil && (len(got.objects) != n || len(got.problems) > 0) {
			rt.Fatalf("%q: %d of %d objects, %v", text, len(got.objects), n, got.problems)
		}
		if usual := end != "\r" && !strings.Contains(between, "#"); usual && got.broken != nil {
			rt.Fatalf("%q: %v", text, got.broken)
		}
		lines := strings.Split(text, "\n")
		for i, o := range got.objects {
			if at := fmt.Sprintf("s%d", i); !slices.ContainsFunc(lines[o.line-1:], func(l string) bool { return strings.Contains(l, at) }) || o.ref().Name != at {
				rt.Fatalf("%q: object %d is %s, on line %d", text, i, o.ref(), o.line)
			}
		}
	})
}

func encoded(text, how string) []byte {
	var out []byte
	switch how {
	case "UTF-8":
		return []byte(text)
	case "with a mark":
		return []byte("\ufeff" + text)
	}
	for _, u := range utf16.Encode([]rune("\ufeff" + text)) {
		if how == "UTF-16LE" {
			out = append(out, byte(u), byte(u>>8))
		} else {
			out = append(out, byte(u>>8), byte(u))
		}
	}
	return out
}
