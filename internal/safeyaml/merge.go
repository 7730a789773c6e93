// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
)

// A mapping may take over the keys of others by "<<" (yaml.org/type/merge.html), and have some of them otherwise. The strict reader below takes
// those for keys that are there twice. So merged keys are written out before, within the budget.

// mergeTag is what the parser calls the key "<<".
const mergeTag = "!!merge"

// merges tells whether anything in a value is merged.
func merges(n *yamlv3.Node) bool {
	for i, child := range n.Content {
		if n.Kind == yamlv3.MappingNode && i%2 == 0 && child.Tag == mergeTag || merges(child) {
			return true
		}
	}
	return false
}

// writeOut gives a value without merges, aliases and anchors. Errors: a key that is there twice, or a merge of something that is no mapping.
func writeOut(n *yamlv3.Node) (*yamlv3.Node, error) {
	for n.Kind == yamlv3.AliasNode {
		n = n.Alias
	}
	out := *n
	out.Anchor, out.Content, out.HeadComment, out.LineComment, out.FootComment = "", nil, "", "", ""
	if n.Kind == yamlv3.MappingNode {
		return &out, writeOutMapping(n, &out)
	}
	for _, child := range n.Content {
		c, err := writeOut(child)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, c)
	}
	return &out, nil
}

// writeOutMapping gives out the keys of n: first its own, then those of what it merges, of which the first counts.
func writeOutMapping(n, out *yamlv3.Node) error {
	there := map[string]bool{}
	var merged []*yamlv3.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == mergeTag {
			merged = append(merged, n.Content[i+1])
			continue
		}
		key, err := writeOut(n.Content[i])
		if err != nil {
			return err
		}
		if key.Kind == yamlv3.ScalarNode && there[key.Value] {
			return fmt.Errorf("yaml: line %d: key %q already set in map", n.Content[i].Line, key.Value)
		}
		there[key.Value] = true
		if err := take(out, key, n.Content[i+1]); err != nil {
			return err
		}
	}
	for _, from := range merged {
		if err := takeMerged(from, out, there); err != nil {
			return err
		}
	}
	return nil
}

// takeMerged adds the keys of a mapping, or of several in a list, that are not there yet.
func takeMerged(from, out *yamlv3.Node, there map[string]bool) error {
	whole, err := writeOut(from)
	if err != nil {
		return err
	}
	sources := []*yamlv3.Node{whole}
	if whole.Kind == yamlv3.SequenceNode {
		sources = whole.Content
	}
	for _, source := range sources {
		if source.Kind != yamlv3.MappingNode {
			return fmt.Errorf("yaml: line %d: << takes a mapping, or a list of mappings", from.Line)
		}
		for i := 0; i+1 < len(source.Content); i += 2 {
			if key := source.Content[i]; !there[key.Value] {
				there[key.Value] = true
				out.Content = append(out.Content, key, source.Content[i+1])
			}
		}
	}
	return nil
}

// take adds a key and what it stands for.
func take(out, key, value *yamlv3.Node) error {
	v, err := writeOut(value)
	if err == nil {
		out.Content = append(out.Content, key, v)
	}
	return err
}
