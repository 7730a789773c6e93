// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/sim/event"
)

// Whatever package event calls an event is known here: a new kind cannot be forgotten.
func TestEveryKindOfEventIsKnown(t *testing.T) {
	noTests := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	packages, err := parser.ParseDir(token.NewFileSet(), "../event", noTests, 0) //nolint:staticcheck // no file there has a build tag
	if err != nil {
		t.Fatal(err)
	}
	var declared, known []string
	for _, file := range packages["event"].Files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == "Lane" && f.Recv != nil {
				declared = append(declared, f.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	for _, e := range zeros() {
		known = append(known, reflect.TypeOf(e).Name())
	}
	slices.Sort(declared)
	slices.Sort(known)
	if !slices.Equal(declared, known) {
		t.Errorf("events declared %v\nknown here    %v", declared, known)
	}
}

// The number under which an event is written is the one under which it is read.
func TestKindsAreReadAsTheyAreWritten(t *testing.T) {
	for number, e := range zeros() {
		c := coder{mode: plain}
		c.show(e)
		if int(c.out[0]) != number+1 {
			t.Errorf("%T is written as %d and read as %d", e, c.out[0], number+1)
		}
	}
}

func TestEqualRunsHaveEqualDigests(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		run := drawRun(t, 20)
		again := slices.Clone(run)
		for i := range again {
			again[i].Event = copied(again[i].Event).Interface().(event.Event)
		}
		if a, b := heard(run, Options{}).Digest(), heard(again, Options{Keep: true}).Digest(); a != b {
			t.Fatalf("digest %s of a run, %s of the same", a, b)
		}
	})
}

// Whatever differs in any one place of one event, the digest tells.
func TestAnyFieldThatDiffersGivesAnotherDigest(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		one := drawEvent(t)
		base := event.Stamped{At: time.Second, Number: 7, Event: one}
		want := heard([]event.Stamped{base}, Options{}).Digest()
		places := 0
		leaves(copied(one), func(reflect.Value) { places++ })
		for changed := range places {
			v, n := copied(one), 0
			leaves(v, func(place reflect.Value) {
				if n == changed {
					alter(place)
				}
				n++
			})
			other := v.Interface().(event.Event)
			if got := heard([]event.Stamped{{At: base.At, Number: base.Number, Event: other}}, Options{}).Digest(); got == want {
				t.Fatalf("equal digests of\n%#v\n%#v", one, other)
			}
		}
		for _, other := range []event.Stamped{{At: base.At + 1, Number: 7, Event: one}, {At: base.At, Number: 8, Event: one}} {
			if heard([]event.Stamped{other}, Options{}).Digest() == want {
				t.Fatalf("the digest does not tell %v/%d from %v/%d", other.At, other.Number, base.At, base.Number)
			}
		}
	})
}

// alter makes a place other than it is.
func alter(place reflect.Value) {
	switch {
	case place.Type() == addrType:
		a := netip.MustParseAddr("198.51.100.7")
		if place.Interface().(netip.Addr) == a {
			a = a.Next()
		}
		place.Set(reflect.ValueOf(a))
	case place.Type() == prefixType:
		place.Set(reflect.ValueOf(netip.MustParsePrefix("198.51.100.0/24")))
	case place.Kind() == reflect.String:
		place.SetString(place.String() + "x")
	case place.Kind() == reflect.Bool:
		place.SetBool(!place.Bool())
	case place.CanInt():
		place.SetInt(place.Int() + 1)
	case place.CanUint():
		place.SetUint(place.Uint() ^ 1)
	case place.Kind() == reflect.Slice:
		place.Set(reflect.Append(place, reflect.Zero(place.Type().Elem())))
	}
}

// Kinds, texts beside each other and events beside each other are told apart, not only their bytes in a row.
func TestDigestKnowsWhereFieldsEnd(t *testing.T) {
	run := func(events ...event.Event) string {
		r := New(Options{})
		for _, e := range events {
			r.Hear(event.Stamped{Event: e})
		}
		return r.Digest()
	}
	pairs := [][2]string{
		{run(event.MachineUp{Machine: "ab", Boot: "c"}), run(event.MachineUp{Machine: "a", Boot: "bc"})},
		{run(event.MachineDown{Machine: "n1"}), run(event.MachineUp{Machine: "n1"})},
		{run(event.Calm{}), run(event.Calm{}, event.Calm{})},
		{run(), run(event.Calm{})},
		{run(event.FaultEnded{On: []string{"a", "b"}}), run(event.FaultEnded{On: []string{"ab"}})},
		{run(event.Calm{}, event.MachineDown{}), run(event.MachineDown{}, event.Calm{})},
	}
	for i, p := range pairs {
		if p[0] == p[1] {
			t.Errorf("pair %d has one digest, %s", i, p[0])
		}
	}
}

// Asking for the digest in between changes nothing.
func TestDigestMayBeAskedForAtAnyTime(t *testing.T) {
	a, b := New(Options{}), New(Options{})
	for i := range 10_000 {
		e := event.Stamped{At: time.Duration(i), Number: uint64(i), Event: event.MachineDown{Machine: "n1"}}
		a.Hear(e)
		b.Hear(e)
		if i%1000 == 0 {
			b.Digest()
		}
	}
	if a.Digest() != b.Digest() {
		t.Error("the digest depends on when it was asked for before")
	}
}

// What is heard thousands of times in each virtual second costs no memory.
func TestHearingDoesNotAllocate(t *testing.T) {
	r := New(Options{})
	for _, e := range []event.Event{
		event.Message{From: "m1", To: "m2", Port: "raft", What: "data", Size: 300},
		event.Applied{Process: "m1", Index: 7, Entry: make([]byte, 300), Digest: "00"},
		event.Flow{Client: "c1", Address: netip.MustParseAddr("192.0.2.1"), NextHop: netip.MustParseAddr("2001:db8::1")},
	} {
		if n := testing.AllocsPerRun(1000, func() { r.Hear(event.Stamped{At: 1, Event: e}) }); n > 0 {
			t.Errorf("%T: %v allocations", e, n)
		}
	}
}

func BenchmarkHear(b *testing.B) {
	message := event.Stamped{At: time.Second, Number: 1000, Event: event.Message{
		From: "m1", To: "m2", Port: "raft", What: "data", Size: 300, Sent: time.Second - time.Millisecond, Arrived: time.Second,
	}}
	for _, keep := range []bool{false, true} {
		b.Run(map[bool]string{false: "digest", true: "keep"}[keep], func(b *testing.B) {
			r := New(Options{Keep: keep, Limit: 1 << 20})
			b.ReportAllocs()
			for b.Loop() {
				message.Number++
				r.Hear(message)
			}
		})
	}
}

// The lane that the page reads from a field is the one that the event names.
func TestLanesAreThoseOfTheEvents(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		e := drawEvent(t)
		_, fields := Describe(event.Stamped{Event: e})
		c := coder{mode: describe}
		c.show(e)
		of, lane := kinds[c.kind].lane, ""
		if fixed, ok := strings.CutPrefix(of, "="); ok {
			lane = fixed
		} else if i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == of }); i >= 0 {
			lane = fields[i].Value
		}
		if lane != e.Lane() {
			t.Fatalf("%#v is in lane %q, here %q", e, e.Lane(), lane)
		}
	})
}
