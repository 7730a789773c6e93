// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
)

// However far members are apart, and wherever they take snapshots, equal records break nothing; one wrong digest or
// entry does, whoever has it.
func TestPropertyS1HoldsForAnyOrderAndBreaksForAnyDifference(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newStory(t, nil)
		log := []event.Applied{}
		first, _ := s.entry(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat})
		log = append(log, first)
		for i := range rapid.IntRange(1, 12).Draw(t, "entries") {
			a, _ := s.entry(&fsm.PutNode{ID: fsm.NodeID(fmt.Sprint("n", i%3)), Version: uint64(i)})
			log = append(log, a)
		}
		at := map[string]int{}
		var said []event.Event
		for len(at) < 3 || slices.ContainsFunc([]string{"m1", "m2", "m3"}, func(m string) bool { return at[m] < len(log) }) {
			m := rapid.SampledFrom([]string{"m1", "m2", "m3"}).Draw(t, "member")
			far := max(at["m1"], at["m2"], at["m3"])
			switch i := at[m]; {
			case i == len(log):
				at[m] = i
			case far > i && rapid.IntRange(0, 4).Draw(t, "how") == 0:
				said = append(said, event.Restored{Process: m, Life: 1, Index: log[far-1].Index, Digest: log[far-1].Digest})
				at[m] = far
			default:
				a := log[i]
				a.Process, a.Life = m, 1
				said = append(said, a)
				at[m] = i + 1
			}
		}
		wrong := rapid.IntRange(-len(said), len(said)-1).Draw(t, "wrong")
		for i, e := range said {
			if i == wrong {
				e = spoiled(t, e)
			}
			s.say(e)
		}
		broken := slices.ContainsFunc(s.set.Finish(s.now), func(v check.Violation) bool { return v.Rule == "S1" })
		if broken != (wrong >= 0) {
			t.Fatalf("wrong at %d of %v: broken %v: %s", wrong, said, broken, s.describe())
		}
	})
}

// spoiled is an event with something wrong in it.
func spoiled(t *rapid.T, e event.Event) event.Event {
	digest := fsm.Digest{Hi: 1, Lo: 2}.String()
	switch x := e.(type) {
	case event.Restored:
		x.Digest = digest
		return x
	case event.Applied:
		if rapid.Bool().Draw(t, "digest") {
			x.Digest = digest
			return x
		}
		other, err := fsm.EncodeEntry(1, []fsm.Proposal{{Command: &fsm.PutNode{ID: "other"}}})
		if err != nil {
			t.Fatal(err)
		}
		x.Entry = other
		return x
	}
	return e
}

// What a real register answers is linearizable, however calls overlap; a read of what was overwritten before it began,
// or was never written, is not.
func TestPropertyLinearizabilityIsToldApart(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newStory(t, nil)
		s.commit(&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat})
		value, calls := "", 0
		open := map[int]func(){} // by call: what ends it
		end := func(id int) { open[id](); delete(open, id) }
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			if len(open) > 0 && rapid.Bool().Draw(t, "end") {
				end(slices.Min(idsOf(open)))
				continue
			}
			calls++
			id, client := calls, fmt.Sprint("c", calls)
			if rapid.Bool().Draw(t, "put") {
				v := fmt.Sprint(id)
				s.say(event.CallBegan{Client: client, ID: id, Do: "put", Key: "x", Value: v})
				early := rapid.Bool().Draw(t, "early") // it takes effect as it begins, or as it ends
				var at fsm.Revision
				effect := func() { at, value = s.commit(check.Put("x", v)), v }
				if early {
					effect()
				}
				open[id] = func() {
					if !early {
						effect()
					}
					if rapid.IntRange(0, 4).Draw(t, "lost") == 0 {
						s.say(event.CallEnded{Client: client, ID: id, Outcome: "unknown"})
						return
					}
					s.say(event.CallEnded{Client: client, ID: id, Outcome: "ok", Index: uint64(at.Index)})
				}
				continue
			}
			s.say(event.CallBegan{Client: client, ID: id, Do: "get", Key: "x"})
			read := value
			open[id] = func() { s.say(event.CallEnded{Client: client, ID: id, Outcome: "ok", Value: read}) }
		}
		for len(open) > 0 {
			end(slices.Min(idsOf(open)))
		}
		wrong := rapid.SampledFrom([]string{"", "never written", "overwritten"}).Draw(t, "wrong")
		switch wrong {
		case "never written":
			s.get("c0", "x", "nonsense")
		case "overwritten":
			s.put("c0", "x", "old")
			s.put("c0", "x", "new")
			s.get("c0", "x", "old")
		}
		s.set.Finish(s.now)
		if broken := len(s.broken) > 0; broken != (wrong != "") {
			t.Fatalf("wrong %q, broken %v: %s", wrong, broken, s.describe())
		}
	})
}

func idsOf(m map[int]func()) (ids []int) {
	for id := range m {
		ids = append(ids, id)
	}
	return ids
}
