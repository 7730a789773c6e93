// SPDX-License-Identifier: Apache-2.0

package safeyaml

import "testing"

func TestDocumentsKeepEveryLineOfEveryOne(t *testing.T) {
	for text, want := range map[string][]Document{
		"a: 1\n":                      {{Line: 1, Text: []byte("a: 1\n")}},
		"---\na: 1\n---\nb: 2":        {{Line: 1, Text: []byte("\na: 1\n")}, {Line: 3, Text: []byte("\nb: 2")}},
		"--- {a: 1}\n...\n# x\n":      {{Line: 1, Text: []byte(" {a: 1}\n")}},
		"a: |\n  ---\n  b\n----\n":    {{Line: 1, Text: []byte("a: |\n  ---\n  b\n----\n")}},
		"\n# only\n---\n\n---\n# x\n": nil,
		"{\"a\": 1}\n{\"b\":\n2}{}\n": {{Line: 1, Text: []byte("{\"a\": 1}")}, {Line: 1, Text: []byte("\n{\"b\":\n2}")}, {Line: 3, Text: []byte("{}")}},
		"---\r\na: 1\r\n---\r\n":      {{Line: 1, Text: []byte("\r\na: 1\r\n")}},
	} {
		got, err := Documents([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("%q: %d documents, want %d", text, len(got), len(want))
			continue
		}
		for i := range got {
			if got[i].Line != want[i].Line || string(got[i].Text) != string(want[i].Text) {
				t.Errorf("%q: document %d is %d %q, want %d %q", text, i, got[i].Line, got[i].Text, want[i].Line, want[i].Text)
			}
		}
	}
}
