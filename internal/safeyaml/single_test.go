// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	yamlv3 "go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// Whatever follows the first document of a text is not left out in silence.
func TestWhatFollowsADocumentIsAnError(t *testing.T) {
	var into map[string]any
	second := "yaml: line 2: another document begins" // or the third
	for name, text := range map[string]string{
		"a second one": "a: 1\n---\nb: 2\n", "one behind dots": "a: 1\n...\nb: 2\n", "an object behind one": `{"a": 1}` + "\n" + `{"b": 2}`,
		"a flow behind one": "{a: 1}\n{b: 2}\n", "a block behind a flow": "[1]\na: 2\n", "a text behind a text": "\"a\"\n\"b\"\n",
		"a second one by line ends of old": "a: 1\r---\rb: 2\r", "a flow behind a marker": "--- {a: 1}\n{b: 2}\n",
	} {
		for how, read := range map[string]func([]byte) error{
			"ToJSON":    func(b []byte) error { _, err := ToJSON(b); return err },
			"Unmarshal": func(b []byte) error { return Unmarshal(b, &into) },
			"Decode":    func(b []byte) error { return Decode(b, &into) },
		} {
			if err := read([]byte(text)); err == nil {
				t.Errorf("%s: %s reads the first alone", name, how)
			} else if !strings.HasPrefix(strings.Replace(err.Error(), "line 3", "line 2", 1), second) {
				t.Errorf("%s: %s says %v", name, how, err)
			}
		}
	}
	for name, text := range map[string]string{
		"nothing": "", "comments": "# a\n", "a marker and a block": "---\na: 1\n", "a block and a marker": "a: 1\n...\n", "an object": `{"a": 1}` + "\n\n",
		"an object and a comment": "{\"a\": 1}\n# b\n", "a flow": "{a: 1, b: [c]}\n", "a byte order mark": "\ufeffa: 1\n",
	} {
		if _, err := ToJSON([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is said at a glance to be one document is one, by the parser's count.
func TestPropertyWhatIsSingleAtAGlanceIsOneDocument(t *testing.T) {
	pieces := []string{"a: 1", "b: {c: [d, e]}", `{"a": 1}`, "{a: 1}", "[1]", "---", "...", "--- ", "--- {a: 1}", "# x", "'a'", `"a"`, "- a", "  b: 2", "|\n  a", "&a b: c", "\ufeff", "%YAML 1.2", "\t", "? a", ": b", "...# x", "---a"}
	ends := []string{"\n", "\n", "\n", "\r\n", "\n\n", " \n"}
	testkit.Check(t, func(rt *rapid.T) {
		var b bytes.Buffer
		for range rapid.IntRange(0, 6).Draw(rt, "pieces") {
			b.WriteString(rapid.SampledFrom(pieces).Draw(rt, "piece") + rapid.SampledFrom(ends).Draw(rt, "end"))
		}
		if !single(b.Bytes()) {
			return
		}
		d, n := yamlv3.NewDecoder(&b), 0
		for ; ; n++ {
			var node yamlv3.Node
			if err := d.Decode(&node); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return // whoever reads it is told
			}
		}
		if n > 1 {
			rt.Fatalf("it has %d documents", n)
		}
	})
}

// UTF-16 of either order is the same text, and half of one is none.
func TestPropertyUTF16IsRead(t *testing.T) {
	testkit.Check(t, func(rt *rapid.T) {
		text := rapid.String().Draw(rt, "text")
		low, high := []byte{0xff, 0xfe}, []byte{0xfe, 0xff}
		for _, u := range utf16.Encode([]rune(text)) {
			low, high = append(low, byte(u), byte(u>>8)), append(high, byte(u>>8), byte(u))
		}
		for _, b := range [][]byte{low, high, []byte("\ufeff" + text)} {
			if got, err := UTF8(b); err != nil || string(got) != string([]rune(text)) {
				rt.Fatalf("%x: %q, %v", b, got, err)
			}
		}
		if _, err := UTF8(low[:len(low)-1]); err == nil && len(low) > 2 {
			rt.Fatal("half of a unit is read")
		}
	})
	for name, b := range map[string][]byte{"the first half alone": {0xff, 0xfe, 0x3d, 0xd8}, "the second half alone": {0xff, 0xfe, 0x00, 0xde}, "two first halves": {0xff, 0xfe, 0x3d, 0xd8, 0x3d, 0xd8}} {
		if got, err := UTF8(b); err == nil {
			t.Errorf("%s is read as %q", name, got)
		}
	}
}
