// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// What is held for an operator is in the log of whoever leads, once in a term, with what to do.
func TestHoldsAreToldWithTheirRemedy(t *testing.T) {
	g, log := newLiveGroup(t), &testkit.Log{}
	source := &liar{view: truth(100, 1)}
	g.commit(
		&fsm.PutHold{ID: "service-1", Of: string(world.KindService), Subjects: []string{"shop/a uid=u"}, Why: "12 of 12 are absent"},
		&fsm.PutHold{ID: "service-2", Of: string(world.KindService), Subjects: []string{"shop/b uid=u"}, Why: "13 of 13 are absent"}, &fsm.ReleaseHold{ID: "service-2"},
	)
	for term := range 2 {
		l, err := New(Config{
			Sources: []NamedSource{{"lying", source}}, Record: g.state, Group: g, Clock: &hand{now: time.Hour}, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		s := newSentry(l, PartServices)
		for range 3 {
			s.holds(g.state.Read(), nil, nil)
		}
		text := log.String()
		if n := strings.Count(text, "removals held"); n != term+1 || !strings.Contains(text, "fairlead holds release service-1") || strings.Contains(text, "service-2") {
			t.Errorf("in term %d the log has it %d times:\n%s", term, n, text)
		}
	}
}
