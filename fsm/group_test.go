// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"reflect"
	"slices"
	"testing"
)

// Whatever another field of a row says is a decision.
func TestRowsAreAlikeThatDifferInNoDecision(t *testing.T) {
	differ(t, (*Group).Alike, "Checkpoint", "History")
	differ(t, (*Member).Alike, "Announced", "Sessions", "Absence")
}

// differ sets each field of a row in turn and looks whether it is like an empty one: just those fields may be set that are named.
func differ[T any](t *testing.T, alike func(a, b *T) bool, may ...string) {
	t.Helper()
	for i := range reflect.TypeFor[T]().NumField() {
		field := reflect.TypeFor[T]().Field(i)
		if !field.IsExported() {
			continue
		}
		var none, set T
		fill(reflect.ValueOf(&set).Elem().Field(i))
		if reflect.DeepEqual(none, set) {
			t.Fatalf("%T.%s is not set", set, field.Name)
		}
		if want := slices.Contains(may, field.Name); alike(&none, &set) != want || alike(&set, &none) != want {
			t.Errorf("rows that differ in %T.%s: alike %t", set, field.Name, !want)
		}
	}
}

// fill sets something in a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Int64:
		v.SetInt(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				fill(f)
			}
		}
	}
}

// Copies are compared by what was decided: a comparison, and what members say of it, change the rest of the record only.
func TestDigestWithoutTablesTellsWhatTheOthersHold(t *testing.T) {
	s := New()
	at := Index(0)
	apply := func(c Command) {
		t.Helper()
		if at++; s.ApplyEntries([]LogEntry{entry(t, s, at, c)})[0][0].Reject != Accepted {
			t.Fatalf("%T is refused", c)
		}
	}
	apply(&InitGroup{Group: "g", Format: NewestFormat})
	apply(&ReportMember{Server: "m1", Name: "m1", Format: NewestFormat, Run: "r"})
	apply(&PutNode{ID: "n1"})
	before := s.Read()
	apply(&Checkpoint{Index: before.Applied(), Digest: before.Digest()})
	apply(&ReportAnnounced{Marks: []AnnouncedMark{{Server: "m1", Run: "r", Upto: before.Revision()}}})
	after := s.Read()
	without := func(v *View) Digest { return v.DigestWithout(TableGroup, TableMembers) }
	if before.Digest() == after.Digest() || without(before) != without(after) || without(after) == (Digest{}) {
		t.Errorf("%s, without group and members %s; then %s, %s", before.Digest(), without(before), after.Digest(), without(after))
	}
	if all := after.DigestWithout(Tables()...); all != (Digest{}) || after.DigestWithout() != after.Digest() {
		t.Errorf("of nothing: %s; of all: %s, want %s", all, after.DigestWithout(), after.Digest())
	}
	apply(&PutNode{ID: "n2"})
	if without(after) == without(s.Read()) {
		t.Error("a node came, and the digest is the same")
	}
}
