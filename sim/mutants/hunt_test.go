// SPDX-License-Identifier: Apache-2.0

package mutants_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/mutants"
)

// worlds answers by bug and seed, and counts the controls.
type worlds struct {
	verdicts map[string]map[uint64]string // the rule that breaks; of "" without a bug
	mu       sync.Mutex
	controls map[uint64]int
}

func (w *worlds) play(_ context.Context, m mutants.Mutant, seed uint64) (mutants.Verdict, error) {
	if m.Name == "" {
		w.mu.Lock()
		w.controls[seed]++
		w.mu.Unlock()
	}
	rule := w.verdicts[m.Name][seed]
	at := 5 * time.Second
	if rule == "" || m.Name == "" && seed == 4 {
		at = time.Minute
	}
	return mutants.Verdict{Rule: rule, At: at, Text: "it broke"}, nil
}

// A bug is caught by the first seed in which a rule breaks that holds without it, up to there; what breaks anyway
// proves nothing.
func TestHuntCountsOnlyWhatHoldsWithoutTheBug(t *testing.T) {
	w := &worlds{controls: map[uint64]int{}, verdicts: map[string]map[uint64]string{
		"": {2: "S8", 4: "S8"}, "a": {2: "S8", 3: "S1"}, "b": {2: "S8"}, "c": {1: "S9"}, "d": {4: "S3"},
	}}
	var told []string
	h := mutants.Hunt{
		World: w.play, Seeds: []uint64{1, 2, 3, 4}, Workers: 2,
		Done: func(_ mutants.Mutant, c mutants.Catch) { told = append(told, c.Name) },
	}
	got, err := h.Run(t.Context(), []mutants.Mutant{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}})
	if err != nil {
		t.Fatal(err)
	}
	spoiled := []mutants.Spoiled{{Seed: 2, Rule: "S8", Text: "it broke"}}
	late := []mutants.Spoiled{{Seed: 4, Rule: "S8", Text: "it broke"}} // after the catch, and another rule
	want := []mutants.Catch{
		{Name: "a", Caught: true, Seeds: 3, VirtualSeconds: 70, Rule: "S1", Seed: 3, Text: "it broke", Spoiled: spoiled,
			Drawn: &mutants.Drawn{Caught: true, Seeds: 3, Rule: "S1", Seed: 3}},
		{Name: "b", Seeds: 4, VirtualSeconds: 185, Spoiled: spoiled, Drawn: &mutants.Drawn{Seeds: 4}},
		{Name: "c", Caught: true, Seeds: 1, VirtualSeconds: 5, Rule: "S9", Seed: 1, Text: "it broke",
			Drawn: &mutants.Drawn{Caught: true, Seeds: 1, Rule: "S9", Seed: 1}},
		{Name: "d", Caught: true, Seeds: 4, VirtualSeconds: 185, Rule: "S3", Seed: 4, Text: "it broke", Spoiled: late,
			Drawn: &mutants.Drawn{Caught: true, Seeds: 4, Rule: "S3", Seed: 4}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if want := map[uint64]int{1: 1, 2: 1, 3: 1, 4: 1}; !reflect.DeepEqual(w.controls, want) {
		t.Errorf("controls %v, want each seed once: %v", w.controls, want)
	}
	if len(told) != 4 {
		t.Errorf("told of %v", told)
	}
	if names := mutants.Survivors(got); !reflect.DeepEqual(names, []string{"b"}) {
		t.Errorf("survivors %v", names)
	}
	if s := mutants.SpoiledSeeds(got); !reflect.DeepEqual(s, append(spoiled, late...)) {
		t.Errorf("spoiled %v", s)
	}
}

// A bug with a scenario of its own is tried in drawn worlds besides, if that is asked for; whether it is caught is for its
// scenario to say.
func TestHuntTriesDrawnWorldsBesides(t *testing.T) {
	for drawn, want := range map[int]*mutants.Drawn{0: nil, 2: {Seeds: 2}, 3: {Caught: true, Seeds: 3, Rule: "S8", Seed: 3}} {
		h := mutants.Hunt{Seeds: []uint64{1, 2, 3}, Drawn: drawn, World: func(_ context.Context, m mutants.Mutant, seed uint64) (mutants.Verdict, error) {
			switch {
			case m.Name == "a" && m.Scenario != "" && seed == 2:
				return mutants.Verdict{Rule: "S1", At: time.Second, Text: "it broke"}, nil
			case m.Name == "a" && m.Scenario == "" && seed == 3:
				return mutants.Verdict{Rule: "S8", At: time.Second, Text: "it broke"}, nil
			}
			return mutants.Verdict{At: time.Minute}, nil
		}}
		got, err := h.Run(t.Context(), []mutants.Mutant{{Name: "a", Scenario: "it.yaml"}})
		if err != nil {
			t.Fatal(err)
		}
		all := mutants.Catch{Name: "a", Caught: true, Seeds: 2, VirtualSeconds: 61, Rule: "S1", Seed: 2, Text: "it broke", Drawn: want}
		if !reflect.DeepEqual(got[0], all) {
			t.Errorf("drawn %d: got %+v, want %+v", drawn, got[0], all)
		}
	}
}

// A world that cannot be played ends the hunt: nobody knows whether the bug is caught.
func TestHuntFailsWhenAWorldCannotBePlayed(t *testing.T) {
	broken := errors.New("no scenario")
	h := mutants.Hunt{Seeds: []uint64{7}, World: func(context.Context, mutants.Mutant, uint64) (mutants.Verdict, error) {
		return mutants.Verdict{}, broken
	}}
	_, err := h.Run(t.Context(), []mutants.Mutant{{Name: "a"}, {Name: "b"}})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "planted bug a: seed 7: ") {
		t.Errorf("error %v", err)
	}
}

// The table takes the place of the former one, and leaves everything around it alone.
func TestTableIsRenewedInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	all := []mutants.Mutant{{Name: "a", Breaks: "it", Rules: []string{"S1", "S2"}}, {Name: "b", Breaks: "that", Rules: []string{"S9"}}}
	old := mutants.Table(all[:1], []mutants.Catch{{Name: "a", Seeds: 3, VirtualSeconds: 180}})
	if err := mutants.WriteTable(path, old); err != nil {
		t.Fatal(err)
	}
	first, _ := os.ReadFile(path)
	if !strings.Contains(string(first), "| a | it | **not caught**, expected S1 or S2 | 3 | 180.0 | not tried |\n") {
		t.Fatalf("got %s", first)
	}
	if err := os.WriteFile(path, []byte("# Sim\n\n"+string(first)+"\nmore\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	drawn := &mutants.Drawn{Caught: true, Rule: "S1", Seed: 7}
	renewed := mutants.Table(all, []mutants.Catch{{Name: "a", Caught: true, Rule: "S1", Seeds: 1, VirtualSeconds: 4.25, Drawn: drawn}, {Name: "b", Caught: true, Rule: "S9", Seeds: 2}})
	if err := mutants.WriteTable(path, renewed); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(renewed, "| S1 | 1 | 4.2 | S1, seed 7 |\n") {
		t.Errorf("got %s", renewed)
	}
	got, _ := os.ReadFile(path)
	if want := "# Sim\n\n" + strings.Replace(string(first), old, renewed, 1) + "\nmore\n"; string(got) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
