// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// told is one event of many kinds, as a person reads them.
func told() Trace {
	r := New(Options{Keep: true})
	number := uint64(0)
	for i, e := range []event.Event{
		event.Started{Process: "m1", Life: 1, Release: "new", Boot: "b1"},
		event.Leading{Process: "m1", Life: 1, Term: 2, On: true},
		event.Message{From: "m1", To: "m2", Port: "raft", What: "data", Size: 120, Sent: time.Millisecond, Arrived: 2 * time.Millisecond},
		event.Message{From: "m1", To: "m3", Port: "raft", What: "data", Size: 120, Sent: time.Millisecond},
		event.Applied{Process: "m2", Life: 1, Index: 7, Term: 2, Entry: entryAt(7), Digest: "00ff"},
		event.FaultBegan{ID: 1, Fault: "cut", On: []string{"m1", "m2"}},
		event.Ended{Process: "m1", Life: 1, Killed: true},
		event.Ended{Process: "m2", Life: 1, Why: "disk is full"},
		event.Forwarding{Switch: "switch-a", Prefix: netip.MustParsePrefix("192.0.2.1/32")},
		event.Object{By: "user", Verb: "create", Kind: "Service", Namespace: "default", Name: "web", Version: 12, Fields: "type=LoadBalancer"},
		event.Object{By: "user", Verb: "create", Kind: "Node", Name: "n1", Version: 13},
		event.Flow{Client: "c1", Address: netip.MustParseAddr("192.0.2.1"), Port: 80, Switch: "switch-a", Wanted: true, Why: "no route"},
		event.Log{Process: "m3", Level: "WARN", Text: "line\none", Fields: "a=b"},
		event.Acted{Process: "n1", Life: 1, Revision: fsm.Revision{Epoch: 1, Index: 7}},
		event.Calm{},
	} {
		number++
		r.Hear(event.Stamped{At: time.Duration(i) * 1500 * time.Microsecond, Number: number, Event: e})
	}
	t := r.Trace()
	t.About.Violation = &Violation{Rule: "S8", At: 18 * time.Millisecond, Number: 13, Sentence: "192.0.2.1 is not forwarded"}
	return t
}

func TestTextTellsEachEventInALine(t *testing.T) {
	var b strings.Builder
	if err := WriteText(&b, told(), Filter{}); err != nil {
		t.Fatal(err)
	}
	const want = `
   0.000000s       1 started      m1 starts life 1, release new, boot b1
   0.001500s       2 leading      m1 leads term 2
   0.003000s       3 message      m1 -> m2 raft data 120 B
   0.004500s       4 message      m1 -> m3 raft data 120 B, lost
   0.006000s       5 applied      m2 applies 7 of term 2
                                  epoch 1 Acknowledge by m1, agents acknowledged   {"Marks":[{"Node":"n3","Boot":"b1","Upto":{"epoch":1,"index":7},"Failed":null}]}
   0.007500s       6 fault-began  fault 1 begins: cut on m1 m2
   0.009000s       7 ended        m1 is killed in life 1
   0.010500s       8 ended        m2 ends life 1: disk is full
   0.012000s       9 forwarding   switch-a forwards 192.0.2.1/32 to nobody
   0.013500s      10 object       user: create Service default/web at 12: type=LoadBalancer
   0.015000s      11 object       user: create Node n1 at 13
   0.016500s      12 flow         c1 to 192.0.2.1:80 via switch-a: not served, no route
   0.018000s      13 log          m3 WARN: line one a=b
   0.018000s         VIOLATION    S8: 192.0.2.1 is not forwarded
   0.019500s      14 acted        n1 carries out 1.7
   0.021000s      15 calm         calm: all faults have ended
`
	if got := "\n" + b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFilterTakesWhatAllItsPartsTake(t *testing.T) {
	for name, c := range map[string]struct {
		filter Filter
		want   []uint64
	}{
		"word":           {Filter{Words: []string{"192.0.2.1"}}, []uint64{9, 12}},
		"case":           {Filter{Words: []string{"LOADBALANCER"}}, []uint64{10}},
		"both-words":     {Filter{Words: []string{"m1", "raft"}}, []uint64{3, 4}},
		"field":          {Filter{Words: []string{"00ff"}}, []uint64{5}},
		"lane":           {Filter{Lanes: []string{"m3"}}, []uint64{4, 13}},
		"sender":         {Filter{Lanes: []string{"m1"}, Kinds: []string{"message"}}, []uint64{3, 4}},
		"kind":           {Filter{Kinds: []string{"ended", "calm"}}, []uint64{7, 8, 15}},
		"time":           {Filter{From: 3 * time.Millisecond, Until: 6 * time.Millisecond}, []uint64{3, 4}},
		"time-and-kinds": {Filter{From: 10 * time.Millisecond, Kinds: []string{"ended"}}, []uint64{8}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []uint64
			for e := range told().Events() {
				if c.filter.Takes(e) {
					got = append(got, e.Number)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("takes %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Fatalf("takes %v, want %v", got, c.want)
				}
			}
		})
	}
}

func TestFilterRefusesUnknownKinds(t *testing.T) {
	err := WriteText(&strings.Builder{}, told(), Filter{Kinds: []string{"mesage"}})
	if err == nil || !strings.Contains(err.Error(), `"mesage"`) || !strings.Contains(err.Error(), "message") {
		t.Errorf("error %v", err)
	}
}

type fullDisk struct{}

var errFull = errors.New("no space left")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWritersTellThatADiskIsFull(t *testing.T) {
	trace := told()
	for name, err := range map[string]error{
		"text": WriteText(fullDisk{}, trace, Filter{}), "file": trace.Write(fullDisk{}), "page": WriteHTML(fullDisk{}, trace, Page{}),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// What the kinds say of events names only fields that they have: Sentence would panic.
func TestEveryKindHasASentence(t *testing.T) {
	for _, e := range one() {
		if s := Sentence(e); strings.ContainsAny(s, "{}[]\n") || s == "" {
			t.Errorf("%T: %q", e.Event, s)
		}
	}
}
