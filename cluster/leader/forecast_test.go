// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// drafted is a draft of the lines of a script.
func drafted(t failer, lines ...string) *world.World {
	other := newScene(t)
	for _, line := range lines {
		other.line(line)
	}
	w := other.world.Clone()
	for _, k := range world.Kinds() {
		w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true, Lists: 1})
	}
	w.Complete = true
	return &w
}

// foresee says what Foresee makes of a draft.
func (s *scene) foresee(t failer, d *datadriven.TestData) string {
	in := s.input()
	in.Record = s.group.state.Read()
	draft := Draft{World: drafted(t, slices.DeleteFunc(strings.Split(d.Input, "\n"), func(l string) bool { return l == "" })...)}
	d.MaybeScanArgs(t.(*testing.T), "in-place-of", &draft.InPlaceOf)
	if draft.InPlaceOf != "" && !s.strict {
		draft.World.AddressPolicies = append(draft.World.AddressPolicies, anything())
	}
	f, err := Foresee(context.Background(), in, draft)
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, c := range f.Changes {
		fmt.Fprintf(&b, "%s %s: %s\n", c.Target, c.Name, c.What)
	}
	for _, h := range f.Held {
		fmt.Fprintf(&b, "held: %s: %s\n", h.Kind, h.Why)
	}
	for _, e := range slices.Concat(f.Pending, f.Waiting) {
		fmt.Fprintf(&b, "waits: %s %s: %s: %s\n", e.Kind, e.Name, e.Code, e.Text)
	}
	if b.Len() == 0 {
		return "nothing would change"
	}
	return b.String()
}

// What is foreseen is what comes: owners of addresses and next hops change as told when the draft is applied. The record
// is left alone.
func TestPropertyForecastsComeTrue(t *testing.T) {
	told := 0
	missing := func() string {
		if told < 30 {
			return fmt.Sprintf("only %d changes were foreseen: this test shows little", told)
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(t *rapid.T) {
		s := newScene(t)
		begin(s)
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			drawStep(t, s)
			s.group.settle(s.input())
		}
		s.blind = false
		s.group.settle(s.input())
		var lines []string
		for range rapid.IntRange(1, 3).Draw(t, "objects") {
			line := one(t, "kind", drawService, drawNode, drawPool, drawFour)(t)
			line = strings.NewReplacer(" uid=again", "", " created=1", "", " created=2", "", " deleting", "").Replace(line)
			if strings.HasPrefix(line, "service") && !strings.Contains(line, "families=") {
				line += " families=4"
			}
			if strings.HasPrefix(line, "service") && !strings.Contains(line, "policy=") {
				line += " policy=SingleStack"
			}
			if w := strings.Fields(line); w[0] == "endpoints" && s.kept[w[0]+" "+w[1]] {
				t.Skip("only the guard knows which slices it misses: a forecast takes them for missing still")
			}
			lines = append(lines, line)
		}
		in := s.input()
		in.Record = s.group.state.Read()
		for i := range s.world.Services { // an object that is written to keeps its age
			for _, line := range lines {
				if strings.HasPrefix(line, "service "+s.world.Services[i].Name+" ") && s.world.Services[i].Created != 0 {
					t.Skip("scenes forget how old what they write to is")
				}
			}
		}
		digest := in.Record.Digest()
		f, err := Foresee(t.Context(), in, Draft{World: drafted(t, lines...)})
		if err != nil {
			t.Fatal(err)
		}
		if s.group.state.Read().Digest() != digest {
			t.Fatal("the record changed")
		}
		before := targets(in.Record)
		for _, line := range lines {
			w := strings.Fields(line)
			s.kept[w[0]+" "+w[1]] = false
			if !strings.HasPrefix(line, "endpoints") {
				s.line(line)
				continue
			}
			six := slices.Clone(s.world.EndpointSlices) // a slice of another name stays when one is applied
			s.line(line)
			for _, slice := range six {
				if slice.ServiceName == w[1] && slice.Endpoints[0].Address.Is6() {
					s.world.EndpointSlices = append(s.world.EndpointSlices, slice)
				}
			}
		}
		s.group.settle(s.input())
		after := targets(s.group.state.Read())
		var got, want []string
		for _, c := range f.Changes {
			if c.Target == "address" || c.Target == "route" {
				got = append(got, strings.Fields(c.Name)[0]+" "+c.What)
			}
		}
		for x := range after {
			if !before[x] {
				want = append(want, x+" +")
			}
		}
		for x := range before {
			if !after[x] {
				want = append(want, x+" -")
			}
		}
		for i := range got {
			got[i] = plainly(got[i])
		}
		got = slices.DeleteFunc(got, func(x string) bool { return x == "" })
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: foreseen\n%s\ncame\n%s", lines, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		told += len(got)
	})
}

func drawFour(t *rapid.T) string {
	return fmt.Sprintf("endpoints %s %s/10.0.0.%d", one(t, "service", drawnServices...), one(t, "on", "n0", "n1", "n2"), rapid.IntRange(1, 3).Draw(t, "pod"))
}

// targets are owners of addresses, and nodes of routes.
func targets(v *fsm.View) map[string]bool {
	out := map[string]bool{}
	for _, a := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) {
		if !a.Releasing {
			out[a.Address.String()+" "+string(a.Service)] = true
		}
	}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		for _, h := range r.NextHops {
			if !h.Withdrawing {
				out[r.Prefix.String()+" "+string(h.Node())] = true
			}
		}
	}
	return out
}

// plainly turns a sentence of a forecast into what targets has.
func plainly(sentence string) string {
	w := strings.Fields(sentence)
	switch w[1] {
	case "goes":
		return w[0] + " " + w[4] + " +"
	case "is":
		if w[2] == "taken" {
			return w[0] + " " + w[6] + " -"
		}
		return "" // shared under another key
	case "gets":
		return w[0] + " " + w[3] + " +"
	case "loses":
		return w[0] + " " + w[3] + " -"
	}
	return sentence
}

// A forecast is given up between two plans.
func TestForecastsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newScene(t)
	in := s.input()
	in.Record = s.group.state.Read()
	if _, err := Foresee(ctx, in, Draft{World: drafted(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("Foresee: %v", err)
	}
	if _, err := ForeseeOutside(ctx, OutsideInput{Record: in.Record}, Draft{World: drafted(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("ForeseeOutside: %v", err)
	}
}
