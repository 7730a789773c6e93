// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"slices"
	"testing"

	"fairlead.io/fairlead/fsm/world"
)

// Lines find out one after the other, and some ask seldom: a connection that ended is no second problem beside a server that
// nobody can dial, and one by itself where it is the only one.
func TestConnectionsThatEndedAreTheirOwnProblemOnlyWhileTheServerIsThere(t *testing.T) {
	t.Parallel()
	closed := trouble{reason: reasonClosed, why: "closed"}
	refused := trouble{reason: reasonUnreachable, why: "refused"}
	for _, c := range []struct {
		name     string
		identity *trouble
		lines    []trouble
		want     []string
	}{
		{"closed only", nil, []trouble{closed, closed}, []string{"closed", "closed"}},
		{"one line knows more", nil, []trouble{closed, refused}, []string{"refused"}},
		{"who asks for the cluster's identity does", &refused, []trouble{closed}, []string{"refused"}},
		{"it does not", &closed, []trouble{refused}, []string{"refused"}},
		{"others are kept", nil, []trouble{{reason: reasonBusy, why: "busy"}, refused, closed}, []string{"busy", "refused"}},
	} {
		s := &Source{identity: &identity{trouble: c.identity}}
		for _, one := range c.lines {
			s.lines = append(s.lines, &line{troubles: map[stage]trouble{stageWatch: one}})
		}
		var all []world.Problem
		for _, l := range s.lines {
			all = l.problems(all, s.awayLocked())
		}
		var got []string
		for _, p := range s.identity.problems(all, s.awayLocked()) {
			got = append(got, p.Why)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
