// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// aboutEndpoints are the proposals of a full plan for some Services and the addresses that they own by the record.
func aboutEndpoints(v *fsm.View, proposals []fsm.Proposal, services map[fsm.ServiceID]bool) (out []string) {
	for _, p := range proposals {
		switch c := p.Command.(type) {
		case *fsm.PutService:
			if services[c.Service.ID] {
				plain := *c
				plain.Service.Pending = fsm.Pending{} // why it waits for an address is Plan's to say
				endpoints, _ := json.Marshal(append([]fsm.Endpoint{}, c.Service.Endpoints...))
				out = append(out, spell(&plain)+string(endpoints))
			}
		case *fsm.SetRoute:
			owners := v.Owners(c.Prefix.Addr().String())
			if slices.ContainsFunc(owners, func(o *fsm.Allocation) bool { return services[o.Service] }) {
				out = append(out, spell(c))
			}
		}
	}
	slices.Sort(out)
	return out
}

// The narrow plan is the full one, looked at through a slit: what it proposes, the full plan proposes too, and of what
// the full plan proposes about the same Services' endpoints and next hops it leaves nothing out.
func TestPropertyNarrowPlanIsAPartOfThePlan(t *testing.T) {
	seen := 0
	missing := func() string {
		if seen < 50 && !testing.Short() {
			return fmt.Sprintf("only %d narrow plans had anything to propose: the draws miss what this is about", seen)
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(t *rapid.T) {
		s := newScene(t)
		begin(s)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			var step string
			if rapid.Bool().Draw(t, "endpoints") {
				step = drawEndpoints(t)
				s.line(step)
			} else {
				step = drawStep(t, s)
			}
			in := s.input()
			in.Record = s.group.state.Read()
			var ids []world.ID
			for _, name := range some(t, drawnServices, len(drawnServices), "asked") {
				ids = append(ids, world.ID{Namespace: "default", Name: name})
			}
			result, other := PlanEndpoints(in, ids)
			narrow := result.Bulk
			if other && len(narrow) > 0 {
				t.Fatalf("%d proposals, though Plan has to look", len(narrow))
			}
			about := map[fsm.ServiceID]bool{}
			for _, p := range narrow {
				if c, ok := p.Command.(*fsm.PutService); ok {
					about[c.Service.ID] = true
				}
			}
			if len(about) > 0 {
				seen++
			}
			full := Plan(in)
			have, want := aboutEndpoints(in.Record, narrow, about), aboutEndpoints(in.Record, all(full), about)
			if !slices.Equal(have, want) {
				t.Fatalf("after %q, asked for %v: narrow\n%v\nfull\n%v\nrecord:\n%s", step, ids, have, want, s.show())
			}
			if len(narrow) > 0 && rapid.Bool().Draw(t, "carry out") {
				for _, o := range s.group.propose(narrow, 500) {
					if o.Err() != nil {
						t.Fatalf("refused: %v", o.Err())
					}
				}
			}
			s.group.settle(s.input())
		}
	})
}

// What was seen is committed with what is done about it, or a new leader could act on an older list.
func TestNarrowPlanTellsWhatItActedOn(t *testing.T) {
	s := routedScene(t)
	s.world.Source, s.world.Cluster = "kubernetes", "c1"
	for i := range s.world.Kinds {
		s.world.Kinds[i].Version = 7
	}
	s.line("endpoints web n2/10.0.0.2")
	in := s.input()
	in.Record = s.group.state.Read()
	result, other := PlanEndpoints(in, []world.ID{{Namespace: "default", Name: "web"}})
	out := result.Bulk
	if other || len(out) != 3 {
		t.Fatalf("%d proposals, other %v", len(out), other)
	}
	if _, ok := out[0].Command.(*fsm.ObserveView); !ok {
		t.Fatalf("the first is %T", out[0].Command)
	}
}
