// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// What is followed from one record to the next is what a look at the whole of each finds, and what was given out stays as it was.
func TestPropertyFollowedServicesAreThoseThatAreJudged(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		g := newGroup(t)
		var given, were [][]*fsm.Service
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			id := fsm.ServiceID(fmt.Sprintf("shop/%d", rapid.IntRange(0, 3).Draw(t, "service")))
			s := service()
			s.ID = id
			was, there := fsm.Get[*fsm.Service](g.Read(), fsm.TableServices, string(id))
			switch rapid.SampledFrom([]string{"probed", "not probed", "judged", "gone", "look"}).Draw(t, "step") {
			case "probed":
				g.tell(t, &fsm.PutService{Service: s})
			case "not probed":
				s.Rare = nil
				g.tell(t, &fsm.PutService{Service: s})
			case "judged":
				if there && was.Probe().Wanted() {
					g.tell(t, &fsm.JudgeService{ID: id, UID: was.UID, Verdicts: []fsm.ProbeVerdict{{Address: first, Say: 1, Of: 1}}})
				}
			case "gone":
				if there {
					g.tell(t, &fsm.DeleteService{ID: id, UID: was.UID})
				}
			case "look": // several changes since the one before
				var want []*fsm.Service
				for _, s := range fsm.List[*fsm.Service](g.Read(), fsm.TableServices) {
					if s.Probe().Wanted() || len(s.Verdicts()) > 0 {
						want = append(want, s)
					}
				}
				got := g.judged.in(g.Read())
				if !slices.Equal(got, want) {
					t.Fatalf("%d Services are judged, want %d", len(got), len(want))
				}
				given, were = append(given, got), append(were, slices.Clone(got))
			}
		}
		for i := range given {
			if !slices.Equal(given[i], were[i]) {
				t.Fatal("what was given out was written to")
			}
		}
	})
}
