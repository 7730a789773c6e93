// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"fairlead.io/fairlead/internal/safeyaml"
)

// document is one YAML document of a file.
type document struct {
	safeyaml.Document
	tree *yamlv3.Node // parsed when the line of a field is first asked for
}

var lineInError = regexp.MustCompile(`line (\d+): `)

// yamlError splits what the YAML parser says into the line of the file and the reason.
func (d *document) yamlError(err error) (line int, why string) {
	why, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  "), "\n")
	m := lineInError.FindStringSubmatch(why)
	if m == nil {
		return d.Line, why
	}
	n, _ := strconv.Atoi(m[1]) // the pattern admits digits only
	// The parser counts on where it wanted more.
	return d.Line + min(n-1, bytes.Count(d.Text, []byte("\n"))), strings.Replace(why, m[0], "", 1)
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
	return d.Line + max(best, 1) - 1
}

// firstLine is the first line that is neither blank nor a comment.
func (d *document) firstLine() int {
	line := d.Line
	for text := range bytes.Lines(d.Text) {
		if !safeyaml.Blank(text) {
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
		if root := safeyaml.Root(d.Text); root != nil {
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
