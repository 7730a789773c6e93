// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

const half = 512 << 10 // bytes: what a viewer may send to be planned

// bombs are short texts that stand for long ones, or are hard to read.
func bombs() map[string]string {
	laughs := "a: &a0 [x]\n"
	for i := 1; i < 40; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return map[string]string{
		"one long text, many aliases": "a: &a \"" + strings.Repeat("x", half/2) + "\"\nl: [" + strings.Repeat("*a,", half/2/3) + "]\n",
		"a billion laughs":            laughs,
		"merged maps":                 "a: &a {" + strings.Repeat("k: v, ", 1) + "x: [" + strings.Repeat("y,", half/4) + "]}\nl:\n" + strings.Repeat("- <<: *a\n", half/20),
		"an alias within itself":      "a: &a [*a]\n",
		"one by way of another":       "a: &a {b: &b [*a]}\n",
		"lists in lists":              strings.Repeat("[", half/2) + strings.Repeat("]", half/2),
		"maps in maps":                strings.Repeat("{a: ", 1000) + strings.Repeat("}", 1000),
		"lists on one line":           strings.Repeat("- ", 1000) + "a\n",
		"aliases deepen":              deepening(),
		"keys by aliases":             "a: &a " + strings.Repeat("x", half/2) + "\nl:\n" + strings.Repeat("- *a : 1\n", half/20),
	}
}

// deepening is nested by its aliases, not by what is written.
func deepening() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x]\n")
	for i := 1; i <= 3; i++ {
		fmt.Fprintf(&b, "a%d: &a%d %s*a%d%s\n", i, i, strings.Repeat("[", MaxDepth/2), i-1, strings.Repeat("]", MaxDepth/2))
	}
	return b.String()
}

// What a text stands for is bounded by what is written before it is spent: no text costs more than some multiple of its length.
func TestBombsAreRefusedBeforeTheyGoOff(t *testing.T) {
	for name, text := range bombs() {
		t.Run(name, func(t *testing.T) {
			readers := map[string]func() error{
				"ToJSON":    func() error { _, err := ToJSON([]byte(text)); return err },
				"Unmarshal": func() error { var v map[string]any; return Unmarshal([]byte(text), &v) },
				"Decode":    func() error { var v any; return Decode([]byte(text), &v) },
			}
			for how, read := range readers {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := read()
				runtime.ReadMemStats(&after)
				if err == nil || !strings.HasPrefix(err.Error(), "yaml: ") || name == "aliases deepen" && !strings.Contains(err.Error(), "deep") {
					t.Errorf("%s: %v", how, err)
				}
				if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 200 {
					t.Errorf("%s of %d KiB: %d MiB were spent", how, len(text)>>10, spent)
				}
			}
		})
	}
}

// Texts without aliases that are as hard to read as there are cost a multiple of their length, too.
func TestTextsWithoutAliasesAreBoundedByTheirLength(t *testing.T) {
	for name, text := range map[string]string{
		"many texts": "[" + strings.Repeat("a,", half/2) + "]", "many lists": "[" + strings.Repeat("[],", half/3) + "]",
		"many maps": "[" + strings.Repeat("{a: b},", half/7) + "]", "many keys": "{" + keys(half) + "}",
		"escapes": `"` + strings.Repeat(`\x01`, half/4) + `"`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ToJSON([]byte(text))
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 400 {
			t.Errorf("%s: %d MiB were spent", name, spent)
		}
	}
}

func keys(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "k%d: v,", i)
	}
	return b.String()
}

// A budget is for texts that are read together: many that each stay below the bound do not add up beyond it.
func TestTextsShareABudget(t *testing.T) {
	text := []byte("a: &a " + strings.Repeat("x", 1000) + "\nb: [" + strings.Repeat("*a,", 300) + "]\n")
	b, read := NewBudget(20*len(text)), 0
	for range 20 {
		if _, err := b.ToJSON(text); err != nil {
			break
		}
		read++
	}
	if read < 3 || read > 5 {
		t.Errorf("%d texts of 320 KiB each were read within %d KiB", read, b.whole>>10)
	}
}

// What people write with aliases is read as before.
func TestAliasesThatPeopleWriteAreRead(t *testing.T) {
	text := []byte("common: &common {app: web, tier: \"*\"}\nlist:\n- <<: *common\n  name: a\n- *common\n")
	var got struct {
		Common map[string]string   `json:"common" yaml:"common"`
		List   []map[string]string `json:"list" yaml:"list"`
	}
	for how, read := range map[string]func([]byte, any) error{"Unmarshal": Unmarshal, "Decode": Decode} {
		if err := read(text, &got); err != nil || got.List[0]["app"] != "web" || got.List[1]["tier"] != "*" {
			t.Errorf("%s: %v, %v", how, got, err)
		}
	}
	if err := Decode(nil, &got); !errors.Is(err, io.EOF) {
		t.Errorf("of nothing: %v", err)
	}
}

// What is plain at a glance has no alias and is not too deep.
func FuzzPlain(f *testing.F) {
	for _, text := range bombs() {
		f.Add([]byte(text[:min(len(text), 4096)]))
	}
	for _, text := range []string{"a:\u0085- - b", "a: b\r- c", "\xff\xfea\x00", "? - ? - a\n: b", "'x'*a", "&a b: *a", "[a,*b]", "-\t- a"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 8<<10 || !plain(text) {
			return
		}
		var root yamlv3.Node
		if yamlv3.Unmarshal(text, &root) != nil {
			return
		}
		b := NewBudget(0)
		w := walk{budget: b, anchored: map[*yamlv3.Node]size{}}
		if _, err := w.size(&root, 0); err != nil || b.left != b.whole {
			t.Errorf("%q is not plain: %v, aliases add %d bytes", text, err, b.whole-b.left)
		}
	})
}

// What is taken from the budget is no less than what the texts grow by: whatever is drawn, its JSON is no longer than what is written and
// what aliases were said to add, at six bytes for one, as JSON escapes them.
func TestPropertyBudgetCoversWhatAliasesAdd(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for i := range rapid.IntRange(1, 12).Draw(t, "anchors") {
			fmt.Fprintf(&b, "k%d: &a%d [%q", i, i, rapid.StringN(0, 30, -1).Draw(t, "text"))
			for range rapid.IntRange(0, 4).Draw(t, "aliases") {
				if i > 0 {
					fmt.Fprintf(&b, ", *a%d", rapid.IntRange(0, i-1).Draw(t, "of"))
				}
			}
			b.WriteString("]\n")
		}
		text := []byte(b.String())
		budget := NewBudget(len(text))
		out, err := budget.ToJSON(text)
		if err != nil {
			return
		}
		if spent := budget.whole - budget.left; len(out) > 6*(len(text)+spent) || !json.Valid(out) {
			t.Errorf("%d bytes became %d, of which aliases were said to add %d", len(text), len(out), spent)
		}
	})
}
