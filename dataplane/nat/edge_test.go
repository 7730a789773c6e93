// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/flows"
	"fairlead.io/fairlead/internal/testkit"
)

// strict is a kernel that takes a change only if it can be told in the kernel's words: elements go to a set that is
// named along with them.
type strict struct {
	t     *rapid.T
	rules Ruleset
	reads int
}

func (s *strict) Read(context.Context, Ruleset) (Ruleset, bool, error) {
	s.reads++
	return newRuleset(), false, nil
}

func (s *strict) Commit(_ context.Context, c Change, sets map[string]Set) error {
	for _, list := range [][]Element{c.Remove, c.Add} {
		for _, e := range list {
			if sets[e.Set].Name != e.Set {
				s.t.Fatalf("an element of %q, a set that is not named", e.Set)
			}
		}
	}
	before, rest := c.Split()
	applyTo(s.t, s.rules, before)
	applyTo(s.t, s.rules, rest)
	return nil
}

func (s *strict) Replace(_ context.Context, r Ruleset, _ bool) error {
	s.rules = newRuleset()
	applyTo(s.t, s.rules, Diff(newRuleset(), r))
	return nil
}

func (s *strict) EndFlows(Flows) (uint, error) { return 0, nil }

func (s *strict) Tally() (map[string]uint64, error) { return nil, nil }

func (s *strict) Clients(context.Context, []string, int) (map[string]int, error) { return nil, nil }

func (s *strict) Loads(context.Context, []flows.Endpoint) (map[flows.Endpoint]flows.Load, error) {
	return nil, nil
}

func (s *strict) Ahead() string { return "" }

func (s *strict) Watch(context.Context, func()) error { return nil }

// K43: the table is read once, and from then on changed where Services changed, whatever their choice is.
// Rule: K43.
func TestPropertyChangesNeedNoSecondLook(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		edge := &strict{t: t, rules: newRuleset()}
		consistent := some([]string{"a/*", "b/x"}, 0, 2).Draw(t, "consistent")
		nodePorts := some(nodesOf, 0, 2).Draw(t, "node ports")
		n, err := Over(Options{Node: "n1", Consistent: consistent, NodePortAddresses: nodePorts}, edge)
		if err != nil {
			t.Fatal(err)
		}
		var services []*desired.Service
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			if len(services) > 0 && rapid.Bool().Draw(t, "successors") {
				services = drawSuccessors(t, services)
			} else {
				services = genServices().Draw(t, "services")
			}
			if _, err := n.apply(t.Context(), "", services); err != nil {
				t.Fatal(err)
			}
			sameRuleset(t, edge.rules, planOf(Config{Node: "n1", Consistent: consistent, NodePortAddresses: nodePorts}, services).Ruleset())
		}
		if edge.reads != 1 {
			t.Fatalf("the table was read %d times", edge.reads)
		}
	})
}
