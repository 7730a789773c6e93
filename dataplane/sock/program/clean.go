// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
)

// emptiers empty a table of the kernel's that is named for what it holds, and tell how many rows went.
var emptiers = map[string]func(*ebpf.Map) (int, error){
	sockMapFrontends: empty[sockPlace, sockFrontend],
	sockMapWindows:   empty[sockPlace, sockWindow],
	sockMapSlots:     empty[sockSlotKey, sockSlot],
	sockMapNodes:     empty[[4]uint32, uint32],
	sockMapAffinity:  empty[sockMemoryKey, sockMemory],
	sockMapFlows:     empty[sockMemoryKey, sockMemory],
	sockMapRecords:   empty[sockRecordKey, sockRecord],
}

// cleaned are tables, and what goes along with their rows.
var cleaned = map[string][]string{
	"places": {sockMapFrontends, sockMapWindows}, "endpoints": {sockMapSlots}, "nodes": {sockMapNodes},
	"affinity": {sockMapAffinity}, "flows": {sockMapFlows}, "sockets": {sockMapRecords},
}

// Clean removes all rows that a table has now, and tells how many; those that programs or the agent write meanwhile may stay. Tables are
// places, endpoints, nodes, affinity, flows and sockets. Errors: ErrNothing; after others some rows are gone.
func Clean(pins, table string) (removed int, err error) {
	maps, ok := cleaned[table]
	if !ok {
		return 0, fmt.Errorf("no table %s", table)
	}
	folders, err := folders(pins)
	if err != nil {
		return 0, err
	}
	for _, folder := range folders { // two while an agent goes over to other sizes
		for i, name := range maps {
			n, err := emptyPinned(filepath.Join(folder, name), emptiers[name])
			if i == 0 {
				removed += n
			}
			if err != nil {
				return removed, fmt.Errorf("empty table %s: %w", name, explain(err))
			}
		}
	}
	return removed, nil
}

func emptyPinned(pin string, empty func(*ebpf.Map) (int, error)) (n int, err error) {
	m, err := ebpf.LoadPinnedMap(pin, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return empty(m)
}

func empty[K, V any](m *ebpf.Map) (n int, err error) {
	err = inBatches(m, m.String(), (*ebpf.Map).BatchLookupAndDelete, func(keys []K, _ []V) { n += len(keys) })
	return n, err
}

// request is the folder beside the tables that asks an agent to compare them. A bpffs holds nothing simpler.
const request = "compare"

// Ask asks the agent to compare the tables with what they shall hold, as soon as it looks: each second, or when it starts.
func Ask(pins string) error {
	if err := os.Mkdir(filepath.Join(pins, request), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("ask for a comparison: %w", err)
	}
	return nil
}

// Asks is whether no agent took that up yet.
func Asks(pins string) bool {
	_, err := os.Stat(filepath.Join(pins, request))
	return err == nil
}

// Asked is whether somebody asked for a comparison since the last call.
func (p *Program) Asked() bool { return os.Remove(filepath.Join(p.options.Pins, request)) == nil }
