// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/wire"
	"fairlead.io/fairlead/internal/testkit"
)

// Whatever is proposed, in whatever order: the record allows what the design allows, holds what it says, and
// refuses without a trace.
func TestPropertyRecordAgreesWithModel(t *testing.T) {
	for _, theme := range themes {
		t.Run(theme, func(t *testing.T) {
			testkit.Check(t, func(t *rapid.T) { agrees(t, theme) })
		})
	}
}

func agrees(t *rapid.T, theme string) {
	w := newHistory(t)
	limits := fsm.Settings{}
	last := w.state.Read()
	for range 12 {
		w.run(t, 16, theme)
		v := w.state.Read()
		factsOf(v).compare(t, w.model.facts())
		w.outside.covered(t, v)
		w.outside.named(t, v, w.model)
		w.outside.traced(t, v)
		nothingUnderDeletion(t, v)
		addressesAreOwned(t, v)
		indexesAgree(t, v)
		neverBack(t, last, v)
		limits = bounds(t, v, limits)
		if got, want := v.Digest(), fullWalk(t, v); got != want {
			t.Fatalf("digest %s, a walk over all records gives %s", got, want)
		}
		last = v
	}
}

// addressesAreOwned is S3, read from the rows alone.
func addressesAreOwned(t *rapid.T, v *fsm.View) {
	all := fsm.List[*fsm.Allocation](v, fsm.TableAllocations)
	for i, a := range all {
		for _, b := range all[:i] {
			if a.Address.Unmap().WithZone("") != b.Address.Unmap().WithZone("") {
				continue
			}
			if a.SharingKey() == "" || a.SharingKey() != b.SharingKey() {
				t.Fatalf("%s belongs to %s and %s, who did not agree to share (S3)", a.Address, a.Service, b.Service)
			}
			for _, p := range a.Ports() {
				for _, q := range b.Ports() {
					if p == q {
						t.Fatalf("%s port %v is both %s's and %s's (S3)", a.Address, p, a.Service, b.Service)
					}
				}
			}
		}
	}
}

// indexesAgree: what is found by an index is what a look at every row finds.
func indexesAgree(t *rapid.T, v *fsm.View) {
	allocations, bindings := fsm.List[*fsm.Allocation](v, fsm.TableAllocations), fsm.List[*fsm.Binding](v, fsm.TableBindings)
	for _, a := range vips {
		ofAddress := slices.DeleteFunc(slices.Clone(allocations), func(r *fsm.Allocation) bool { return r.Address != a })
		if got := v.Owners(a.String()); !slices.Equal(got, ofAddress) {
			t.Fatalf("owners of %s by index %v, by looking %v", a, got, ofAddress)
		}
	}
	for _, s := range services {
		ofService := slices.DeleteFunc(slices.Clone(allocations), func(r *fsm.Allocation) bool { return r.Service != s })
		if got := v.Addresses(s); !slices.Equal(got, ofService) {
			t.Fatalf("addresses of %s by index %v, by looking %v", s, got, ofService)
		}
	}
	for _, b := range bindings {
		subject := fsm.Subject(line(mBinding{identity: string(b.Identity), address: b.Address}, b.ID))
		onLine := slices.DeleteFunc(slices.Clone(bindings), func(r *fsm.Binding) bool { return r.Subject() != subject })
		if got := v.OnSubject(subject); !slices.Equal(got, onLine) {
			t.Fatalf("bindings on %s by index %v, by looking %v", subject, got, onLine)
		}
	}
	balancers := fsm.List[*fsm.LoadBalancer](v, fsm.TableBalancers)
	for _, l := range balancers {
		alike := slices.DeleteFunc(slices.Clone(balancers), func(r *fsm.LoadBalancer) bool {
			return r.ID != l.ID && (l.Identity == "" || r.Identity != l.Identity)
		})
		if got := v.BalancersOn(l.Subject()); !slices.Equal(got, alike) {
			t.Fatalf("balancers on %s by index %v, by looking %v", l.Subject(), got, alike)
		}
		of := slices.DeleteFunc(slices.Clone(bindings), func(r *fsm.Binding) bool { return r.Balancer != l.ID })
		if got := v.BindingsOf(l.ID); !slices.Equal(got, of) {
			t.Fatalf("bindings of %s by index %v, by looking %v", l.ID, got, of)
		}
	}
}

// neverBack is S13, and that a format once committed stays.
func neverBack(t *rapid.T, before, after *fsm.View) {
	if older(after.Revision(), before.Revision()) {
		t.Fatalf("revision %v after %v (S13)", after.Revision(), before.Revision())
	}
	if after.Group().Format < before.Group().Format {
		t.Fatalf("format %d after %d", after.Group().Format, before.Group().Format)
	}
}

// bounds checks that no history is longer than the largest limit that was ever committed, and returns that.
func bounds(t *rapid.T, v *fsm.View, most fsm.Settings) fsm.Settings {
	now := v.Group().Settings
	most.HistoryLimit, most.GraveLimit = max(most.HistoryLimit, now.HistoryLimit, 3), max(most.GraveLimit, now.GraveLimit, 3)
	for _, table := range fsm.Tables() {
		for _, r := range fsm.List[fsm.Record](v, table) {
			trail, ok := reflect.ValueOf(r).Elem().FieldByName("History").Interface, reflect.ValueOf(r).Elem().FieldByName("History").IsValid()
			if !ok {
				continue
			}
			steps := trail().(fsm.Trail)
			if len(steps) > int(most.HistoryLimit) {
				t.Fatalf("%s %s has a history of %d steps, limit %d", table, r.Key(), len(steps), most.HistoryLimit)
			}
			for i, s := range steps {
				if i > 0 && older(s.Revision, steps[i-1].Revision) || s.By().Actor != "test" {
					t.Fatalf("%s %s: a history out of order or made up: %+v", table, r.Key(), steps)
				}
			}
		}
	}
	if graves := fsm.List[*fsm.Grave](v, fsm.TableGraves); len(graves) > int(most.GraveLimit) {
		t.Fatalf("%d graves, limit %d", len(graves), most.GraveLimit)
	}
	return most
}

// fullWalk computes the digest anew from every record, with other arithmetic than the record's own.
func fullWalk(t *rapid.T, v *fsm.View) fsm.Digest {
	sum := new(big.Int)
	for _, table := range fsm.Tables() {
		for _, r := range fsm.List[fsm.Record](v, table) {
			data, err := wire.Append([]byte(string(table)+"\x00"), r)
			if err != nil {
				t.Fatal(err)
			}
			h := sha256.Sum256(data)
			sum.Add(sum, new(big.Int).SetBytes(h[:16]))
		}
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 128))
	var b [16]byte
	sum.FillBytes(b[:])
	return fsm.Digest{Hi: binary.BigEndian.Uint64(b[:8]), Lo: binary.BigEndian.Uint64(b[8:])}
}

// Restoring a snapshot taken anywhere, then replaying the rest, lands where replaying everything does, with
// the same outcomes on the way.
func TestPropertySnapshotResumesLog(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := newHistory(t)
		for range 4 {
			w.run(t, 20, "all")
		}
		cut := rapid.IntRange(0, len(w.log)).Draw(t, "cut")
		early := fsm.New()
		early.ApplyEntries(w.log[:cut])
		frozen, taken := early.Freeze(), snapshot(t, early)
		copied, err := early.Read().Copy()
		if err != nil {
			t.Fatal(err)
		}
		copied.ApplyEntries(w.log[cut:])
		sameRecord(t, copied, w.state)
		if !bytes.Equal(snapshot(t, early), taken) {
			t.Fatalf("cut %d: what was done to a copy is in the record", cut)
		}
		early.ApplyEntries(w.log[cut:])
		var late bytes.Buffer
		if err := frozen.Write(&late); err != nil || !bytes.Equal(late.Bytes(), taken) {
			t.Fatalf("cut %d: entries that came later are in the snapshot (%v)", cut, err)
		}
		resumed := fsm.New()
		resumed.ApplyEntries(w.log[:rapid.IntRange(0, cut).Draw(t, "behind")]) // what it held before does not matter
		if err := resumed.Restore(&late); err != nil {
			t.Fatal(err)
		}
		indexesAgree(t, resumed.Read())
		if got, want := resumed.ApplyEntries(w.log[cut:]), w.outcomes[cut:]; len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("cut %d: outcomes %v, want %v", cut, got, want)
		}
		sameRecord(t, resumed, w.state)
	})
}

// Equal entries yield equal outcomes, digests and snapshots, however Raft hands them over.
func TestPropertyEqualEntriesEqualDigests(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		w := newHistory(t)
		for range 4 {
			w.run(t, 20, "all")
		}
		other := fsm.New()
		var outcomes [][]fsm.Outcome
		for rest := w.log; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "batch")
			outcomes = append(outcomes, other.ApplyEntries(rest[:n])...)
			last := w.digests[len(w.log)-len(rest)+n-1]
			if other.Applied() != last.index || other.Digest() != last.digest {
				t.Fatalf("at %d with %s, want %d with %s", other.Applied(), other.Digest(), last.index, last.digest)
			}
			rest = rest[n:]
		}
		if !reflect.DeepEqual(outcomes, w.outcomes) {
			t.Fatalf("outcomes %v, want %v", outcomes, w.outcomes)
		}
		sameRecord(t, other, w.state)
	})
}

func sameRecord(t *rapid.T, a, b *fsm.State) {
	if a.Applied() != b.Applied() || a.Digest() != b.Digest() {
		t.Fatalf("at %d with %s, want %d with %s", a.Applied(), a.Digest(), b.Applied(), b.Digest())
	}
	if !bytes.Equal(snapshot(t, a), snapshot(t, b)) {
		t.Fatal("equal digests, and snapshots of different bytes")
	}
}

func snapshot(t *rapid.T, s *fsm.State) []byte {
	var b bytes.Buffer
	if err := s.Freeze().Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
