// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/event"
)

func written(t interface{ Fatal(...any) }, trace Trace) []byte {
	var b bytes.Buffer
	if err := trace.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What was heard is what is kept, in memory and in a file, event by event and field by field.
func TestTraceReadsBackAsItWasHeard(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		run := drawRun(t, 30)
		kept := heard(run, Options{Keep: true}).Trace()
		kept.About = About{Seed: 7, Scenario: "nothing", Violation: &Violation{Rule: "S1", At: time.Second, Sentence: "why"}}
		file := written(t, kept)
		back, err := Read(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		for _, trace := range []Trace{kept, back} {
			if got := slices.Collect(trace.Events()); !reflect.DeepEqual(got, run) {
				t.Fatalf("heard\n%#v\nkept\n%#v", run, got)
			}
		}
		if !reflect.DeepEqual(back.About, kept.About) || back.Digest != kept.Digest || back.Heard != uint64(len(run)) {
			t.Fatalf("wrote %+v %s, read %+v %s", kept.About, kept.Digest, back.About, back.Digest)
		}
		if !bytes.Equal(written(t, back), file) {
			t.Fatal("a trace that was read is written in another way")
		}
	})
}

// Whatever happens to a file, Read returns an error or the very same events; it never panics.
func TestDamagedFilesAreRefused(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		trace := heard(drawRun(t, 10), Options{Keep: true}).Trace()
		file := written(t, trace)
		at := rapid.IntRange(0, len(file)-1).Draw(t, "at")
		if rapid.Bool().Draw(t, "cut") {
			file = file[:at]
		} else {
			file[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		}
		back, err := Read(bytes.NewReader(file))
		if err == nil && !slices.EqualFunc(slices.Collect(back.Events()), slices.Collect(trace.Events()),
			func(a, b event.Stamped) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatal("a damaged file was read without complaint")
		}
	})
}

// Damage below the checksum of gzip is found as well.
func TestDamagedEventsAreRefused(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		trace := heard(append(drawRun(t, 10), event.Stamped{At: time.Hour, Number: 99, Event: event.Calm{}}), Options{Keep: true}).Trace()
		packed := slices.Clone(trace.packed[0])
		at := rapid.IntRange(0, len(packed)-1).Draw(t, "at")
		if rapid.Bool().Draw(t, "cut") {
			packed = packed[:at]
		} else {
			packed[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		}
		err := check(packed, head{Digest: trace.Digest, Heard: trace.Heard, Kept: trace.Kept()})
		again := Trace{packed: [][]byte{packed}}
		if err == nil && !reflect.DeepEqual(slices.Collect(again.Events()), slices.Collect(trace.Events())) {
			t.Fatal("damaged events were read without complaint")
		}
	})
}

func TestOtherFilesAreRefused(t *testing.T) {
	for _, content := range []string{"", "hello", "\x1f\x8b"} {
		if _, err := Read(bytes.NewReader([]byte(content))); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// busy is a run in which a rare event stands at the beginning and messages follow.
func busy(r *Recorder, n int) {
	r.Hear(event.Stamped{Number: 1, Event: event.Leading{Process: "m1", Term: 7, On: true}})
	for i := range n {
		at := time.Duration(i) * time.Millisecond
		r.Hear(event.Stamped{At: at, Number: uint64(i) + 2, Event: event.Message{
			From: "m1", To: "m2", Port: "raft", What: "data", Size: i, Sent: at, Arrived: at,
		}})
	}
}

// A limit holds, the newest events stay, of the old ones the rare do, and what is gone is counted.
func TestLimitDropsOldMessagesFirstAndSaysSo(t *testing.T) {
	const limit, n = 100_000, 50_000
	r := New(Options{Keep: true, Limit: limit})
	busy(r, n)
	trace := r.Trace()
	size := 0
	for _, p := range trace.packed {
		size += len(p)
	}
	events := slices.Collect(trace.Events())
	switch {
	case size > limit:
		t.Errorf("%d bytes kept, limit %d", size, limit)
	case events[0].Event != event.Event(event.Leading{Process: "m1", Term: 7, On: true}):
		t.Errorf("the first event is %+v: the leader is gone", events[0])
	case events[len(events)-1].Number != n+1:
		t.Errorf("the last event is number %d of %d", events[len(events)-1].Number, n+1)
	case trace.Dropped["message"]+uint64(len(events)) != trace.Heard || trace.Heard != n+1 || trace.Dropped["message"] == 0:
		t.Errorf("%d heard, %d kept, %v dropped", trace.Heard, len(events), trace.Dropped)
	case trace.Missing() == "":
		t.Error("nothing said")
	}
	whole := New(Options{})
	busy(whole, n)
	if whole.Digest() != trace.Digest {
		t.Error("the digest depends on what was kept")
	}
	back, err := Read(bytes.NewReader(written(t, trace)))
	if err != nil || back.Missing() != trace.Missing() {
		t.Errorf("read back: %q, %v", back.Missing(), err)
	}
}

// Rare events alone cannot break the limit either.
func TestLimitHoldsForRareEvents(t *testing.T) {
	const limit = 20_000
	r := New(Options{Keep: true, Limit: limit})
	for i := range 20_000 {
		r.Hear(event.Stamped{Number: uint64(i) + 1, Event: event.Leading{Process: "m1", Term: uint64(i)}})
	}
	size := 0
	trace := r.Trace()
	for _, p := range trace.packed {
		size += len(p)
	}
	if size > limit || trace.Dropped["leading"] == 0 || trace.Kept() == 0 {
		t.Errorf("%d bytes, %d kept, dropped %v", size, trace.Kept(), trace.Dropped)
	}
}

func unzipped(t *testing.T, file []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
