// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/sock"
)

// Clients counts the rows of tables that clients fill, many in one call into the kernel, which takes no note of that as a use.
func (p *Program) Clients() (map[string]sock.Held, error) {
	now, err := monotonic()
	if err != nil {
		return nil, err
	}
	out := map[string]sock.Held{}
	rules := map[uint32]int{}
	records, err := countRows[sockRecordKey](p.maps.Records, "records", func(r sockRecord) bool { rules[r.Rule]++; return false })
	records.Rules = rules
	out["records"] = records
	for name, m := range map[string]*ebpf.Map{"affinity": p.maps.Affinity, "flows": p.maps.Flows} {
		h, failed := countRows[sockMemoryKey](m, name, func(one sockMemory) bool { return unused(now, one) <= sock.RecentUse })
		h.Timed = true
		out[name] = h
		err = errors.Join(err, failed)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

func countRows[K, V any](m *ebpf.Map, name string, recent func(V) bool) (sock.Held, error) {
	h := sock.Held{Room: int(m.MaxEntries())}
	err := inBatches(m, name, (*ebpf.Map).BatchLookup, func(_ []K, values []V) {
		h.Rows += len(values)
		for _, v := range values {
			if recent(v) {
				h.Recent++
			}
		}
	})
	return h, err
}

// inBatches goes through a table that others may write to meanwhile, with whichever of ebpf's calls: each row that stays is met once.
func inBatches[K, V any](m *ebpf.Map, name string, next func(*ebpf.Map, *ebpf.MapBatchCursor, any, any, *ebpf.BatchOptions) (int, error), f func([]K, []V)) error {
	var at ebpf.MapBatchCursor
	keys, values := make([]K, batch), make([]V, batch)
	for {
		n, err := next(m, &at, keys, values, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("go through table %s: %w", name, err)
		}
		f(keys[:n], values[:n])
		if err != nil {
			return nil // that was the last of it
		}
	}
}

// monotonic is the clock by which programs note when a row was used.
func monotonic() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("clock: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

// unused is for how long a row was not used.
func unused(now time.Duration, one sockMemory) time.Duration {
	return max(0, now-time.Duration(one.Last))
}
