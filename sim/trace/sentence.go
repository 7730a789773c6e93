// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"

	"fairlead.io/fairlead/sim/event"
)

// Sentence is an event in human words, on one line.
func Sentence(e event.Stamped) string {
	c := coder{mode: describe, at: e.At}
	c.show(e.Event)
	return oneLine.Replace(say(kinds[c.kind].words, c.described))
}

var oneLine = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ", "\x1b", "?")

// say puts fields into words: {name} is the value of a field, {name?a|b} is a when it has one and b when not, and what
// stands in [ ] is left out when a field in it has no value. page/sentence.js does the same.
func say(words string, fields []Field) string {
	var b strings.Builder
	for words != "" {
		i := strings.IndexAny(words, "{[")
		if i < 0 {
			break
		}
		b.WriteString(words[:i])
		end := "}"
		if words[i] == '[' {
			end = "]"
		}
		inner, rest, _ := strings.Cut(words[i+1:], end)
		if words[i] == '{' {
			b.WriteString(value(inner, fields))
		} else if whole(inner, fields) {
			b.WriteString(say(inner, fields))
		}
		words = rest
	}
	b.WriteString(words)
	return b.String()
}

// value is what stands for {of}.
func value(of string, fields []Field) string {
	name, choice, choose := strings.Cut(of, "?")
	f := find(name, fields)
	if !choose {
		return f.Value
	}
	yes, no, _ := strings.Cut(choice, "|")
	if f.empty {
		return no
	}
	return yes
}

// whole tells whether all fields that a part names have values.
func whole(part string, fields []Field) bool {
	for {
		_, after, more := strings.Cut(part, "{")
		if !more {
			return true
		}
		name, rest, _ := strings.Cut(after, "}")
		if find(name, fields).empty {
			return false
		}
		part = rest
	}
}

func find(name string, fields []Field) Field {
	for _, f := range fields {
		if f.Name == name {
			return f
		}
	}
	panic("trace: no field " + name)
}
