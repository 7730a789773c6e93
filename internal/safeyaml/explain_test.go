// SPDX-License-Identifier: Apache-2.0

package safeyaml_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/safeyaml"
)

type sample struct {
	Name   string `yaml:"name"`
	Nested struct {
		Address netip.Addr     `yaml:"address"`
		Prefix  []netip.Prefix `yaml:"prefixes"`
		After   time.Duration  `yaml:"after"`
		Port    uint16         `yaml:"port"`
		On      *bool          `yaml:"on"`
	} `yaml:"nested"`
	inlined `yaml:",inline"`
	Limits  map[string]int `yaml:"limits"`
}

type inlined struct {
	Key string `yaml:"key"`
}

// What cannot be read is told with line, field and what may stand there, in words of those who write files, whatever the decoder calls it.
func TestExplainNamesLineFieldAndForm(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nnested: {address: tor}":              `line 2: nested.address: "tor" is not an address; write one such as 192.0.2.1`,
		"name: a\nnested:\n  after: 10\n":              `line 3: nested.after: "10" is not a length of time; write a number with its unit, such as 90s`,
		"nested: {prefixes: [192.0.2.0/24, 10.0.0/8]}": `line 1: nested.prefixes[1]: "10.0.0/8" is not a prefix`,
		"nested: {port: 70000}":                        `line 1: nested.port: "70000" is not a whole number from 0 to 65535`,
		"nested: {on: maybe}":                          `line 1: nested.on: "maybe" is not true or false`,
		"nested: [a]":                                  "line 1: nested: elements of a list where these fields belong: address, after, on, port, prefixes",
		"nested: {prefixes: 192.0.2.0/24}":             `line 1: nested.prefixes: "192.0.2.0/24" where a list belongs`,
		"\n\nnmae: a":                                  "line 3: nmae: there is no such field; did you mean name?",
		"other: a":                                     "line 1: other: there is no such field; it is one of key, limits, name, nested",
		"key: {a: b}":                                  "line 1: key: fields, which are not a text; put it in quotes",
		"limits: {a: b}":                               `line 1: limits.a: "b" is not a whole number`,
	} {
		var s sample
		err := safeyaml.Decode([]byte(text), &s)
		if err == nil {
			t.Errorf("%s: it was read", text)
			continue
		}
		if got := safeyaml.Explain([]byte(text), &s, "yaml", err).Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
	other := errors.New("other")
	var s sample
	if got := safeyaml.Explain([]byte("name: a\nkey: 7\nnested: {on: true, after: 3s}"), &s, "yaml", other); !errors.Is(got, other) {
		t.Errorf("nothing is wrong with it: %v", got)
	}
}
