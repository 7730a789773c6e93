// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/fsm"
)

// snapshotRuns is how often a snapshot is written or restored.
const snapshotRuns = 5

// snapshotSeconds writes snapshots to a file, synced.
func snapshotSeconds(t *bench) figures {
	oneCore(t)
	file := filepath.Join(t.TempDir(), "snapshot")
	detail := map[string]any{}
	var f figures
	for _, size := range []int{smallRecord, largeRecord} {
		s := filled(t, size)
		f.samples = nil
		for range snapshotRuns {
			begin := time.Now()
			writeSnapshot(t, s.Freeze(), file)
			f.samples = append(f.samples, time.Since(begin).Seconds())
		}
		describe(t, detail, size, file, f.samples)
	}
	f.detail = detail
	return f
}

// restoreSeconds reads snapshots from a file into an empty record, digest and checksum compared.
func restoreSeconds(t *bench) figures {
	oneCore(t)
	file := filepath.Join(t.TempDir(), "snapshot")
	detail := map[string]any{}
	var f figures
	for _, size := range []int{smallRecord, largeRecord} {
		writeSnapshot(t, filled(t, size).Freeze(), file)
		f.samples = nil
		for range snapshotRuns {
			runtime.GC()
			begin := time.Now()
			restoreSnapshot(t, file)
			f.samples = append(f.samples, time.Since(begin).Seconds())
		}
		describe(t, detail, size, file, f.samples)
	}
	f.detail = detail
	return f
}

func describe(t *bench, detail map[string]any, size int, file string, samples []float64) {
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	name := "100000"
	if size == largeRecord {
		name = "1000000"
	}
	detail[name] = map[string]any{"seconds_p50": quantile(slices.Sorted(slices.Values(samples)), 0.5), "seconds": samples, "bytes": info.Size()}
}

func writeSnapshot(t *bench, frozen *fsm.Frozen, file string) {
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := frozen.Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

func restoreSnapshot(t *bench, file string) *fsm.State {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := fsm.New()
	if err := s.Restore(bufio.NewReader(f)); err != nil {
		t.Fatal(err)
	}
	return s
}

// applyPause takes the longest time that Apply needed for an entry of one command while snapshots of a large record
// were taken and written, beside the longest without.
func applyPause(t *bench) figures {
	s := filled(t, largeRecord)
	file := filepath.Join(t.TempDir(), "snapshot")
	c := &calls{size: largeRecord}
	alone := pauses(t, s, c, func() { time.Sleep(5 * time.Second) })
	during := pauses(t, s, c, func() {
		for range snapshotRuns {
			writeSnapshot(t, s.Freeze(), file)
		}
	})
	longest := during[len(during)-1]
	return figures{samples: during, value: &longest, detail: map[string]any{
		"bindings": largeRecord, "snapshots": snapshotRuns,
		"alone_p50": quantile(alone, 0.5), "alone_p99": quantile(alone, 0.99), "alone_longest": alone[len(alone)-1],
		"p999": quantile(during, 0.999),
	}}
}

// pauses applies single commands while beside runs, and gives what each took in milliseconds, sorted.
func pauses(t *bench, s *fsm.State, c *calls, beside func()) (sorted []float64) {
	var done atomic.Bool
	go func() {
		defer done.Store(true)
		beside()
	}()
	for !done.Load() {
		for _, batch := range c.batches(t, s, s.Applied(), 1) {
			for _, e := range batch {
				begin := time.Now()
				mustApply(t, s, []fsm.LogEntry{e})
				sorted = append(sorted, milliseconds(time.Since(begin)))
			}
		}
	}
	slices.Sort(sorted)
	return sorted
}
