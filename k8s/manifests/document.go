// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"fairlead.io/fairlead/internal/safeyaml"
)

// document is one YAML document of a file.
type document struct {
	line int // of the file, from 1, at which text begins
	text []byte
	tree *yamlv3.Node // parsed when the line of a field is first asked for
}

// split cuts a file at its document markers, "---" and "...". Markers stand at the start of a line, where no value
// of a manifest can: block scalars are indented.
func split(data []byte) []document {
	var out []document
	start, startLine, line := 0, 1, 0
	cut := func(end int) {
		if text := data[start:end]; !blank(text) {
			out = append(out, objects(text, startLine)...)
		}
	}
	for at := 0; at < len(data); {
		line++
		next := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		if isMarker(data[at:next]) {
			cut(at)
			// What follows the marker on its line belongs to the new document.
			start, startLine = at+len("---"), line
		}
		at = next
	}
	cut(len(data))
	return out
}

// objects are the documents of a text without markers: one, but for objects of JSON, which may stand behind each other, as kubectl reads them.
func objects(text []byte, line int) (out []document) {
	d := json.NewDecoder(bytes.NewReader(text))
	for begin := int64(0); ; {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case errors.Is(err, io.EOF) && len(out) > 0:
			return out
		case err != nil || value[0] != '{':
			return []document{{line: line, text: text}}
		}
		end := d.InputOffset()
		out = append(out, document{line: line, text: text[begin:end]})
		line += bytes.Count(text[begin:end], []byte("\n"))
		begin = end
	}
}

func isMarker(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || strings.IndexByte(" \t\r\n", line[3]) >= 0
}

// blank tells whether a document holds nothing but space and comments.
func blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

var lineInError = regexp.MustCompile(`line (\d+): `)

// yamlError splits what the YAML parser says into the line of the file and the reason.
func (d *document) yamlError(err error) (line int, why string) {
	why, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  "), "\n")
	m := lineInError.FindStringSubmatch(why)
	if m == nil {
		return d.line, why
	}
	n, _ := strconv.Atoi(m[1]) // the pattern admits digits only
	// The parser counts on where it wanted more.
	return d.line + min(n-1, bytes.Count(d.text, []byte("\n"))), strings.Replace(why, m[0], "", 1)
}

// lineOf finds the line of the file on which a field stands, or else the nearest thing around it that is there.
func (d *document) lineOf(field string) int {
	if field == "" {
		return d.firstLine()
	}
	node := d.root()
	best := node.Line
	for field != "" {
		key, child, rest := step(node, field)
		if child == nil {
			break
		}
		best, node, field = key.Line, child, rest
	}
	return d.line + max(best, 1) - 1
}

// firstLine is the first line that is neither blank nor a comment.
func (d *document) firstLine() int {
	line := d.line
	for text := range bytes.Lines(d.text) {
		if !blank(text) {
			break
		}
		line++
	}
	return line
}

// root is the document's outermost value; an empty node if the text is none that this parser knows.
func (d *document) root() *yamlv3.Node {
	if d.tree == nil {
		d.tree = &yamlv3.Node{}
		if root := safeyaml.Root(d.text); root != nil {
			d.tree = root
		}
	}
	return d.tree
}

// step goes from a node along the first part of a field path: ".name", "[index]" or "[key]". Keys may hold dots, so
// a mapping is asked which of its keys the path starts with.
func step(node *yamlv3.Node, field string) (key, child *yamlv3.Node, rest string) {
	switch node.Kind {
	case yamlv3.SequenceNode:
		inside, rest, ok := strings.Cut(strings.TrimPrefix(field, "["), "]")
		i, err := strconv.Atoi(inside)
		if ok && err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i], node.Content[i], strings.TrimPrefix(rest, ".")
		}
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			name := node.Content[i].Value
			if rest, ok := strings.CutPrefix(field, "["+name+"]"); ok {
				return node.Content[i], node.Content[i+1], strings.TrimPrefix(rest, ".")
			}
			rest, ok := strings.CutPrefix(field, name)
			if ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return node.Content[i], node.Content[i+1], strings.TrimPrefix(rest, ".")
			}
		}
	}
	return nil, nil, ""
}
