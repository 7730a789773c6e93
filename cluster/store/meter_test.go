// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/testkit"
)

// kept is every entry of a log, counted by looking at each.
func kept(t *rapid.T, log raft.LogStore) (indexes []uint64, bytes map[uint64]uint64) {
	last, err := log.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	bytes = map[uint64]uint64{}
	for i := uint64(1); i <= last; i++ {
		var l raft.Log
		if log.GetLog(i, &l) == nil {
			indexes = append(indexes, i)
			bytes[i] = uint64(len(l.Data)+len(l.Extensions)) + 128
		}
	}
	return indexes, bytes
}

// A meter knows of a log what looking at each entry tells, whatever was stored and deleted, and one that was made just now knows the same.
func TestPropertyMeterKnowsTheLog(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		log := raft.NewInmemStore()
		m, err := store.NewMeter(log)
		if err != nil {
			t.Fatal(err)
		}
		next := uint64(1)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"store", "store", "delete", "replace", "skip", "again"}).Draw(t, "step") {
			case "store":
				var logs []*raft.Log
				for range rapid.IntRange(1, 4).Draw(t, "entries") {
					l := genLog(t)
					l.Index = next
					next++
					logs = append(logs, l)
				}
				err = m.StoreLogs(logs)
			case "delete":
				err = m.DeleteRange(1, rapid.Uint64Range(1, next).Draw(t, "upTo"))
			case "replace":
				from := rapid.Uint64Range(1, next).Draw(t, "from")
				err = m.DeleteRange(from, next)
				next = from
			case "skip": // a snapshot of another member's goes further than this log
				next += 3
			case "again":
				m, err = store.NewMeter(log)
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, m, log, next)
		}
	})
}

func check(t *rapid.T, m *store.Meter, log raft.LogStore, next uint64) {
	indexes, bytes := kept(t, log)
	behind := rapid.Uint64Range(0, next).Draw(t, "behind")
	var all, wantEntries, wantBytes uint64
	for _, i := range indexes {
		all += bytes[i]
		if i > behind {
			wantEntries, wantBytes = i-behind, wantBytes+bytes[i]
		}
	}
	if got := m.Bytes(); got != all {
		t.Fatalf("%d bytes, of %d", got, all)
	}
	if entries, got := m.Behind(behind); got != wantBytes || entries != wantEntries {
		t.Fatalf("behind %d: %d entries of %d bytes, not %d of %d", behind, entries, got, wantEntries, wantBytes)
	}
	limit, most := rapid.Uint64Range(0, all+200).Draw(t, "limit"), rapid.Uint64Range(0, next+2).Draw(t, "most")
	n := m.Newest(most, limit)
	if len(indexes) == 0 {
		return
	}
	last, sum := indexes[len(indexes)-1], uint64(0)
	takes := func(n uint64) (sum uint64) { // what the newest n indexes take
		for _, i := range indexes {
			if last-i < n {
				sum += bytes[i]
			}
		}
		return sum
	}
	if sum = takes(n); n > most || sum > limit {
		t.Fatalf("the newest %d take %d bytes; %d of %d bytes may stay", n, sum, most, limit)
	}
	for longer := n + 1; longer <= most && longer <= last; longer++ {
		if takes(longer) > sum && takes(longer) <= limit {
			t.Fatalf("%d stay, though %d take %d bytes of %d", n, longer, takes(longer), limit)
		}
	}
}

func TestMeterTellsOfGrowth(t *testing.T) {
	m, err := store.NewMeter(raft.NewInmemStore())
	if err != nil {
		t.Fatal(err)
	}
	told := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	put := func(index uint64) {
		t.Helper()
		if err := m.StoreLog(&raft.Log{Index: index, Data: make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	if !told(m.Stored(0)) {
		t.Error("of nothing it tells at once")
	}
	c := m.Stored(2000)
	for i := uint64(1); i <= 3; i++ {
		if put(i); told(c) != (i >= 2) {
			t.Errorf("after %d entries: %v", i, told(c))
		}
	}
	c, later := m.Stored(10), m.Stored(1500)
	if put(4); told(later) || told(c) {
		t.Error("told too early, or the one who asked before")
	}
	if put(5); !told(later) {
		t.Error("not told")
	}
}

// An entry that nothing depends on may be damaged: who needs it learns of it.
func TestMeterLooksAtNoEntry(t *testing.T) {
	inner := raft.NewInmemStore()
	g := store.NewGuard("p", store.Stores{Log: inner, Stable: inner, Snapshots: raft.NewInmemSnapshotStore()})
	for i := uint64(1); i <= 3; i++ {
		if err := g.Checked().Log.StoreLog(&raft.Log{Index: i, Data: make([]byte, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	var l raft.Log
	if err := inner.GetLog(2, &l); err != nil {
		t.Fatal(err)
	}
	l.Data[7] ^= 1
	if err := inner.StoreLog(&l); err != nil {
		t.Fatal(err)
	}
	m, err := store.NewMeter(g.Checked().Log)
	if err != nil || g.Err() != nil || m.Bytes() < 3000 {
		t.Errorf("%v, %v", err, g.Err())
	}
	if err := m.GetLog(2, &l); err == nil {
		t.Error("it was read as it is")
	}
}
