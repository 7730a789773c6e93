// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
		var cpu []float64
		f.samples = nil
		for range snapshotRuns {
			begin, used := time.Now(), processorTime()
			writeSnapshot(t, s.Freeze(), file)
			f.samples = append(f.samples, time.Since(begin).Seconds())
			cpu = append(cpu, (processorTime() - used).Seconds())
		}
		describe(t, detail, size, file, f.samples, cpu)
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
		var cpu []float64
		f.samples = nil
		for range snapshotRuns {
			runtime.GC()
			begin, used := time.Now(), processorTime()
			restoreSnapshot(t, file)
			f.samples = append(f.samples, time.Since(begin).Seconds())
			cpu = append(cpu, (processorTime() - used).Seconds())
		}
		describe(t, detail, size, file, f.samples, cpu)
	}
	f.detail = detail
	return f
}

func describe(t *bench, detail map[string]any, size int, file string, samples, cpu []float64) {
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	name := "100000"
	if size == largeRecord {
		name = "1000000"
	}
	detail[name] = map[string]any{
		"seconds_p50": quantile(slices.Sorted(slices.Values(samples)), 0.5), "seconds": samples,
		"processor_seconds": cpu, "bytes": info.Size(),
	}
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

func restoreSnapshot(t *bench, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := fsm.New()
	if err := s.Restore(bufio.NewReader(f)); err != nil {
		t.Fatal(err)
	}
}
