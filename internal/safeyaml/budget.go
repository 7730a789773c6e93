// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"fmt"

	yamlv3 "go.yaml.in/yaml/v3"
)

const (
	// MaxDepth bounds how deep values stand in each other. Kubernetes' own definitions stay below 60.
	MaxDepth = 256
	// Allowance is how many bytes aliases may add beside as many as the text has itself.
	Allowance = 1 << 20
	// nodeBytes is what a value counts beside its text, since the smallest ones cost the most for what they say.
	nodeBytes = 64
)

// Budget is what the aliases of texts that are read together may add.
type Budget struct{ left, whole int }

// NewBudget gives a budget for texts that have so many bytes together.
func NewBudget(bytes int) *Budget {
	whole := bytes + Allowance
	return &Budget{left: whole, whole: whole}
}

// Spend looks at one document and takes from the budget what its aliases add. It takes time and memory in proportion to the length of the
// text alone. Errors: no YAML, more than one document, nested too deeply, an alias within what it stands for, or more than the budget has left. They name the line.
func (b *Budget) Spend(text []byte) error {
	_, err := b.spend(text)
	return err
}

// spend is Spend. It gives the document where it was parsed.
func (b *Budget) spend(text []byte) (*yamlv3.Node, error) {
	if plain(text) && single(text) {
		return nil, nil
	}
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	w := walk{budget: b, anchored: map[*yamlv3.Node]size{}}
	_, err = w.size(root, 0)
	return root, err
}

// size is what a value comes to once its aliases are written out.
type size struct{ bytes, depth int }

// walk measures one document, each of its nodes once.
type walk struct {
	budget *Budget
	// anchored are the nodes that aliases may stand for. One that is being measured has depth 0 still.
	anchored map[*yamlv3.Node]size
}

func (w *walk) size(n *yamlv3.Node, above int) (size, error) {
	if n.Kind == yamlv3.AliasNode {
		return w.alias(n, above)
	}
	if above > MaxDepth {
		return size{}, tooDeep(n)
	}
	if n.Anchor != "" {
		w.anchored[n] = size{}
	}
	s := size{bytes: nodeBytes + len(n.Value)}
	for _, child := range n.Content {
		c, err := w.size(child, above+1)
		if err != nil {
			return size{}, err
		}
		s.bytes += c.bytes
		s.depth = max(s.depth, c.depth)
	}
	s.depth++
	if n.Anchor != "" {
		w.anchored[n] = s
	}
	return s, nil
}

// alias takes what an alias stands for from the budget, so that no sum can grow beyond that.
func (w *walk) alias(n *yamlv3.Node, above int) (size, error) {
	s := w.anchored[n.Alias]
	switch {
	case s.depth == 0:
		return s, fmt.Errorf("yaml: line %d: the alias *%s stands within what it stands for; write it out", n.Line, n.Value)
	case above+s.depth > MaxDepth+1:
		return s, tooDeep(n)
	case s.bytes > w.budget.left:
		return s, fmt.Errorf("yaml: line %d: with the alias *%s, aliases add more than %d bytes to what is written; write out what they stand for, in fewer places or files", n.Line, n.Value, w.budget.whole)
	}
	w.budget.left -= s.bytes
	return s, nil
}

func tooDeep(n *yamlv3.Node) error {
	return fmt.Errorf("yaml: line %d: values stand in each other more than %d deep; nest them less", n.Line, MaxDepth)
}
