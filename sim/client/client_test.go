// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/network/httpd"
)

// However calls get lost, late or refused: what clients say of their reads and writes can be explained, each call ends
// once, and nothing that was told to be refused is in the record.
func TestPropertyRegistersSayNoMoreThanTheyKnow(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := newBench(rapid.Uint64().Draw(t, "seed"))
		rules, err := check.New(check.Options{Rules: []string{"S2"}, Topology: check.Topology{Members: []string{"m1", "m2", "m3"}}})
		if err != nil {
			t.Fatal(err)
		}
		b.w.Hear(rules.Hear)
		b.rough = true
		for i := range rapid.IntRange(1, 4).Draw(t, "clients") {
			b.Register(fmt.Sprint("c", i), []string{"a", "b"}[:rapid.IntRange(1, 2).Draw(t, "keys")], 200*time.Millisecond)
		}
		b.w.At(time.Second, b.found)
		b.w.At(8*time.Second, func() { b.rough = false })
		if err := b.w.Run(16 * time.Second); err != nil {
			t.Fatal(err)
		}
		for _, v := range rules.Finish(b.w.Now()) {
			t.Error(v)
		}
		b.judge(t)
	})
}

// judge holds calls against what was committed.
func (b *bench) judge(t *rapid.T) {
	puts, tried := map[string]bool{}, map[string]int{} // values that were committed, and how often they were asked for
	for _, e := range b.events {
		if c, ok := e.Event.(event.CallBegan); ok {
			tried[c.Value]++
		}
		if a, ok := e.Event.(event.Applied); ok {
			_, proposals, _ := fsm.DecodeEntry(a.Entry)
			for _, p := range proposals {
				if put, ok := p.Command.(*fsm.PutRegister); ok {
					puts[string(put.Spec)] = true
				}
			}
		}
	}
	began, ends := map[int]event.CallBegan{}, map[string]int{}
	for _, e := range b.events {
		switch x := e.Event.(type) {
		case event.CallBegan:
			if _, twice := began[x.ID]; twice {
				t.Fatalf("two calls %d", x.ID)
			}
			began[x.ID] = x
		case event.CallEnded:
			c, open := began[x.ID]
			if !open {
				t.Fatalf("call %d ended twice, or without a beginning", x.ID)
			}
			delete(began, x.ID)
			ends[c.Do+" "+x.Outcome]++
			if c.Do == "put" && x.Outcome == "refused" && puts[c.Value] && tried[c.Value] == 1 {
				t.Fatalf("%s was refused, and is in the record", c.Value)
			}
		}
	}
	for _, must := range []string{"put ok", "get ok"} {
		if ends[must] == 0 {
			t.Errorf("no %s: %v", must, ends)
		}
	}
}

// A hand does what it is told in order, however often it has to say so.
func TestPropertyAHandKeepsTheOrder(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := newBench(rapid.Uint64().Draw(t, "seed"))
		b.rough = true
		h := b.NewHand("hand")
		var heard []string
		for i := range rapid.IntRange(1, 10).Draw(t, "commands") {
			key := fmt.Sprint("p", i)
			h.Do(key, check.Put(key, "x"), func(fsm.Outcome) { heard = append(heard, key) })
		}
		want := h.Waiting()
		b.w.At(time.Second, b.found)
		if err := b.w.Run(5 * time.Minute); err != nil {
			t.Fatal(err)
		}
		if h.Waiting() != 0 || len(heard) != want || !slices.IsSorted(heard) {
			t.Fatalf("%d of %d are done: %v", len(heard), want, heard)
		}
		for i := range want {
			if _, ok := fsm.Get[*fsm.Register](b.state.Read(), fsm.TableRegisters, fmt.Sprint("p", i)); !ok {
				t.Errorf("p%d is not in the record", i)
			}
		}
	})
}

// What the record refuses was answered; it is no failure of the group.
func TestARefusalOfTheRecordIsAnAnswer(t *testing.T) {
	b := newBench(1)
	b.found()
	var got fsm.Outcome
	b.NewHand("hand").Do("b1", &fsm.RemoveBinding{ID: "b1"}, func(o fsm.Outcome) { got = o })
	if err := b.w.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if got.Reject != fsm.RejectNotFound {
		t.Errorf("%+v", got)
	}
	last := b.events[slices.IndexFunc(b.events, func(e event.Stamped) bool { _, ok := e.Event.(event.CallEnded); return ok })]
	if x := last.Event.(event.CallEnded); x.Outcome != "ok" || x.Index != 0 || x.Value != "not-found" {
		t.Errorf("%+v", x)
	}
}

// An operator asks whoever leads, is told what was refused, and who he is shows in the record. In a bubble, since the services wait by the real
// clock until somebody leads, as no world does.
func TestAnOperatorReachesTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(1)
		b.found()
		b.leader = 2
		b.commit(1, fsm.Proposal{Command: &fsm.PutHold{ID: "h", Of: "services", Subjects: []string{"s"}}})
		b.Operator().Release()
		var missing error
		b.Operator().ReleaseHold("other", "because", func(err error) { missing = err })
		if err := b.w.Run(time.Second); err != nil {
			t.Fatal(err)
		}
		h, _ := fsm.Get[*fsm.Hold](b.state.Read(), fsm.TableHolds, "h")
		if !h.Released || b.actors["operator/operator"] == 0 {
			t.Errorf("%+v by %v", h, b.actors)
		}
		if !errors.Is(missing, admin.Invalid) {
			t.Errorf("%v", missing)
		}
	})
}

// Nobody is there at all.
func TestAnOperatorHearsThatNobodyAnswers(t *testing.T) {
	b := newBench(1)
	for _, m := range []string{"m1", "m2", "m3"} {
		b.n.Close(m, "7443")
	}
	var got error
	b.Operator().Transfer("m1", func(err error) { got = err })
	if err := b.w.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(got, httpd.ErrRefused) {
		t.Error(got)
	}
}
