// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// policies gives a State with so many records, in an entry each.
func policies(n int) *State {
	s := New()
	for i := range n {
		epoch := Epoch(1)
		var c Command = &PutRegister{ID: RegisterID(fmt.Sprintf("p%d", i)), UID: "u", Version: 1, Spec: []byte("{}")}
		if i == 0 {
			epoch, c = 0, &InitGroup{Group: "g1", Format: NewestFormat}
		}
		data, err := EncodeEntry(epoch, []Proposal{{Actor: "test", Command: c}})
		if err != nil {
			panic(err)
		}
		s.ApplyEntries([]LogEntry{{Index: Index(i + 1), Term: 1, Data: data}})
	}
	return s
}

func goOn() error { return nil }

// A bit that flips in memory, in a record, in what it hashed to or in the sum of all, is found; the digest that applying keeps says nothing of it.
func TestVerifyFindsWhatChangedInMemory(t *testing.T) {
	for name, c := range map[string]struct {
		flip func(s *State)
		says string
	}{
		"nothing": {func(*State) {}, ""},
		"content": {func(s *State) {
			p, _ := Get[*Register](s.Read(), TableRegisters, "p300")
			p.Spec[0] ^= 1
		}, `policies "p300"`},
		"hash": {func(s *State) {
			p, _ := Get[*Register](s.Read(), TableRegisters, "p7")
			p.sum.Lo ^= 1 << 40
		}, `policies "p7"`},
		"sum": {func(s *State) { s.view.Load().digest.Hi ^= 1 }, "sum up to"},
	} {
		t.Run(name, func(t *testing.T) {
			s := policies(400)
			before := s.Digest()
			c.flip(s)
			if name == "content" && s.Digest() != before {
				t.Error("the digest heard of it")
			}
			switch err := s.Read().Verify(goOn); {
			case c.says == "" && err != nil:
				t.Error(err)
			case c.says != "" && (!errors.Is(err, ErrSpoiled) || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%v", err)
			}
		})
	}
}

func TestVerifyRestsAndEndsThere(t *testing.T) {
	s, enough, rests := policies(1000), errors.New("enough"), 0
	err := s.Read().Verify(func() error {
		if rests++; rests == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || rests != 3 {
		t.Errorf("%v after %d rests", err, rests)
	}
}

// A checkpoint of another digest changes the record as one of the same digest does, and is remembered until one agrees.
func TestCheckpointThatContradictsIsNoted(t *testing.T) {
	right, wrong := policies(5), policies(5)
	at := Index(5)
	have, known := right.DigestAt(at)
	if !known || have != right.Digest() {
		t.Fatalf("digest at %d: %v %v", at, have, known)
	}
	for i, told := range []Digest{{Lo: 1}, {Lo: 2}} {
		entry := func(d Digest) LogEntry {
			data, err := EncodeEntry(1, []Proposal{{Actor: "test", Command: &Checkpoint{Index: at, Digest: d}}})
			if err != nil {
				t.Fatal(err)
			}
			return LogEntry{Index: at + 1, Term: 1, Data: data}
		}
		have, _ := wrong.DigestAt(at)
		for _, o := range [][][]Outcome{right.ApplyEntries([]LogEntry{entry(have)}), wrong.ApplyEntries([]LogEntry{entry(told)})} {
			if err := o[0][0].Err(); err != nil {
				t.Fatal(err)
			}
		}
		if right.Digest() != wrong.Digest() {
			t.Fatalf("round %d: records differ by what a checkpoint found", i)
		}
		if c := right.Contradicted(); c != nil {
			t.Errorf("%+v", c)
		}
		if c := wrong.Contradicted(); c == nil || *c != (Contradiction{at, have, told}) {
			t.Errorf("%+v", c)
		}
		at++
	}
	data, err := EncodeEntry(1, []Proposal{{Actor: "test", Command: &Checkpoint{Index: at, Digest: wrong.Digest()}}})
	if err != nil {
		t.Fatal(err)
	}
	wrong.ApplyEntries([]LogEntry{{Index: at + 1, Term: 1, Data: data}})
	if c := wrong.Contradicted(); c != nil {
		t.Errorf("one agreed since: %+v", c)
	}
}

// A record that takes the place of another one has digests of its own alone.
func TestDigestsOfTheRecordBeforeAreForgotten(t *testing.T) {
	s := policies(5)
	var nine bytes.Buffer
	if err := policies(9).Freeze().Write(&nine); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(&nine); err != nil {
		t.Fatal(err)
	}
	if _, known := s.DigestAt(5); known {
		t.Error("it knows one of the record before")
	}
	if d, known := s.DigestAt(9); !known || d != s.Digest() {
		t.Error("it does not know its own")
	}
}

func BenchmarkVerify(b *testing.B) {
	v := policies(10_000).Read()
	for b.Loop() {
		if err := v.Verify(goOn); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/record")
}
