// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"slices"
	"strings"
)

// Selector chooses objects by their labels, as a LabelSelector of Kubernetes does. An empty one chooses all.
type Selector struct {
	// Labels an object must all have.
	Labels []KV
	// Requirements it must all meet.
	Requirements []Requirement
}

// Requirement is one of matchExpressions.
type Requirement struct {
	Key      string
	Operator Operator
	Values   []string
}

// Operator of a requirement.
type Operator string

// The operators. NotIn and DoesNotExist are met by objects that lack the label.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// Matches tells whether an object with these labels, sorted by key, is chosen.
func (s Selector) Matches(labels []KV) bool {
	for _, want := range s.Labels {
		if v, ok := labelOf(labels, want.Key); !ok || v != want.Value {
			return false
		}
	}
	return !slices.ContainsFunc(s.Requirements, func(r Requirement) bool { return !r.met(labels) })
}

// met is false for an operator that nobody knows: what was meant is unknown, so nothing is chosen.
func (r Requirement) met(labels []KV) bool {
	v, ok := labelOf(labels, r.Key)
	switch r.Operator {
	case In:
		return ok && slices.Contains(r.Values, v)
	case NotIn:
		return !ok || !slices.Contains(r.Values, v)
	case Exists:
		return ok
	case DoesNotExist:
		return !ok
	}
	return false
}

// AnyMatches tells whether one of several selectors chooses an object with these labels; of none, none does.
func AnyMatches(list []Selector, labels []KV) bool {
	return slices.ContainsFunc(list, func(s Selector) bool { return s.Matches(labels) })
}

func labelOf(labels []KV, key string) (string, bool) {
	i, ok := slices.BinarySearchFunc(labels, key, func(kv KV, key string) int { return strings.Compare(kv.Key, key) })
	if !ok {
		return "", false
	}
	return labels[i].Value, true
}

func (s Selector) clone() Selector {
	s.Labels = slices.Clone(s.Labels)
	s.Requirements = cloneEach(s.Requirements, func(r Requirement) Requirement {
		r.Values = slices.Clone(r.Values)
		return r
	})
	return s
}

func (s *Selector) sort() {
	sortKVs(&s.Labels)
	for i := range s.Requirements {
		sortSet(&s.Requirements[i].Values, strings.Compare)
	}
	sortBy(&s.Requirements, Requirement.compare)
}

func (r Requirement) compare(o Requirement) int {
	return cmp.Or(strings.Compare(r.Key, o.Key), strings.Compare(string(r.Operator), string(o.Operator)), slices.Compare(r.Values, o.Values))
}

// sortSelectors brings a list of selectors, of which any may choose, into its canonical form.
func sortSelectors(list *[]Selector) {
	for i := range *list {
		(*list)[i].sort()
	}
	sortBy(list, func(a, b Selector) int {
		return cmp.Or(slices.CompareFunc(a.Labels, b.Labels, compareKVs), slices.CompareFunc(a.Requirements, b.Requirements, Requirement.compare))
	})
}
