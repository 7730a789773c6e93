// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Parsers read the first document of a text and leave it at that, also where what follows is no document. Who wrote it would miss the rest, and
// what it defined. So a text with more than one is refused; who reads several cuts them apart first (Documents).

var lineOfError = regexp.MustCompile(`line (\d+): `)

// parse reads the one document of a text; an empty node if there is none.
func parse(text []byte) (*yamlv3.Node, error) {
	root, d := &yamlv3.Node{}, yamlv3.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(root); errors.Is(err, io.EOF) {
		return root, nil
	} else if err != nil {
		return nil, err
	}
	var more yamlv3.Node
	err := d.Decode(&more)
	if errors.Is(err, io.EOF) {
		return root, nil
	}
	line := more.Line
	if err != nil {
		line = 1 // what the parser says of it counts lines from 0, and leaves the first out
		if m := lineOfError.FindStringSubmatch(err.Error()); m != nil {
			n, _ := strconv.Atoi(m[1]) // the pattern admits digits only
			line = n + 1
		}
	}
	return nil, fmt.Errorf("yaml: line %d: another document begins, or something that belongs to none; put a line --- between documents, with line ends as Unix or Windows have them", line)
}

// single tells at a glance that nothing can follow the first document of a text: nothing can where its value is a block, which ends where the text
// does or at a marker, and where all of it is one value of JSON. It may be wrong only in not telling.
func single(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	begun := false
	for line := range bytes.Lines(text) {
		switch rest := bytes.TrimLeft(line, " \t\r\n"); {
		case len(rest) == 0 || rest[0] == '#':
		case marks(line) && begun:
			return false
		case marks(line): // a value may follow on its line
			if rest = bytes.TrimLeft(rest[len("---"):], " \t\r\n"); len(rest) > 0 && rest[0] != '#' {
				return false
			}
		case begun:
		case rest[0] == '{':
			return object(text)
		case bytes.IndexByte([]byte("[\"'&!|>%*"), rest[0]) >= 0:
			return false
		default:
			begun = true
		}
	}
	return true
}

// object tells whether a text is one value of JSON.
func object(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	var value json.RawMessage
	return d.Decode(&value) == nil && len(bytes.TrimSpace(text[d.InputOffset():])) == 0
}
