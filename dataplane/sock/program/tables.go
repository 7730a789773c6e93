// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/cilium/ebpf"

	"fairlead.io/fairlead/dataplane/sock"
)

// Read gives all rows that the tables hold.
func (p *Program) Read() (sock.Rows, error) {
	rows := sock.NewRows()
	var at sockPlace
	var frontend sockFrontend
	err := each(p.maps.Frontends, "places", &at, &frontend, func() {
		rows.Places[decodePlace(at)] = sock.Row{First: decodeChoice(frontend.First), Then: decodeChoice(frontend.Then)}
	})
	var key sockSlotKey
	var slot sockSlot
	err = errors.Join(err, each(p.maps.Slots, "slots", &key, &slot, func() {
		rows.Slots[sock.SlotKey{Set: key.Set, Index: key.Index}] = decodeSlot(slot)
	}))
	var node [4]uint32
	var one uint32
	err = errors.Join(err, each(p.maps.Nodes, "nodes", &node, &one, func() { rows.Nodes[decodeAddress(node)] = true }))
	var window sockWindow
	err = errors.Join(err, each(p.maps.Windows, "windows", &at, &window, func() { rows.Windows[decodePlace(at)] = true }))
	return rows, err
}

func each(m *ebpf.Map, name string, key, value any, f func()) error {
	rows := m.Iterate()
	for rows.Next(key, value) {
		f()
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read table %s: %w", name, err)
	}
	return nil
}

// Apply carries a change out in the order that keeps every reader right. After an error the tables hold part of it: Read
// tells which.
func (p *Program) Apply(c sock.Change) error {
	slotKeys, slots := make([]sockSlotKey, 0, len(c.PutSlots)), make([]sockSlot, 0, len(c.PutSlots))
	for k, s := range c.PutSlots {
		slotKeys = append(slotKeys, sockSlotKey{Set: k.Set, Index: k.Index})
		slots = append(slots, encodeSlot(k, s))
	}
	if err := put(p.maps.Slots, "slots", slotKeys, slots); err != nil {
		return err
	}
	if err := put(p.maps.Windows, "windows", places(c.PutWindows), make([]sockWindow, len(c.PutWindows))); err != nil {
		return err
	}
	if err := put(p.maps.Nodes, "nodes", addresses(c.PutNodes), make([]uint32, len(c.PutNodes))); err != nil {
		return err
	}
	at := slices.Collect(maps.Keys(c.PutPlaces))
	rows := make([]sockFrontend, len(at))
	for i, a := range at {
		rows[i] = encodeRow(a, c.PutPlaces[a])
	}
	if err := put(p.maps.Frontends, "places", places(at), rows); err != nil {
		return err
	}
	if err := drop(p.maps.Frontends, "places", places(c.DropPlaces)); err != nil {
		return err
	}
	if err := drop(p.maps.Nodes, "nodes", addresses(c.DropNodes)); err != nil {
		return err
	}
	if err := drop(p.maps.Windows, "windows", places(c.DropWindows)); err != nil {
		return err
	}
	gone := make([]sockSlotKey, len(c.DropSlots))
	for i, k := range c.DropSlots {
		gone[i] = sockSlotKey{Set: k.Set, Index: k.Index}
	}
	return drop(p.maps.Slots, "slots", gone)
}

func places(in []sock.Place) []sockPlace {
	out := make([]sockPlace, len(in))
	for i, p := range in {
		out[i] = encodePlace(p)
	}
	return out
}

func addresses(in []netip.Addr) [][4]uint32 {
	out := make([][4]uint32, len(in))
	for i, a := range in {
		out[i] = encodeAddress(a)
	}
	return out
}

// batch bounds one call into the kernel, which holds a lock on parts of the table meanwhile.
const batch = 1024

// put writes rows, many at once where the kernel can (5.6).
func put[K, V any](m *ebpf.Map, name string, keys []K, values []V) error {
	for len(keys) > 0 {
		n := min(len(keys), batch)
		done, err := m.BatchUpdate(keys[:n], values[:n], nil)
		if errors.Is(err, ebpf.ErrNotSupported) {
			done, err = n, putEach(m, keys[:n], values[:n])
		}
		if err != nil {
			return fmt.Errorf("write table %s: %w", name, full(m, err))
		}
		keys, values = keys[done:], values[done:]
	}
	return nil
}

func putEach[K, V any](m *ebpf.Map, keys []K, values []V) error {
	for i := range keys {
		if err := m.Put(keys[i], values[i]); err != nil {
			return err
		}
	}
	return nil
}

func full(m *ebpf.Map, err error) error {
	if errors.Is(err, ebpf.ErrKeyExist) || !isTooBig(err) {
		return err
	}
	return fmt.Errorf("it has room for %d rows: %w", m.MaxEntries(), err)
}

// drop removes rows; that some are gone already is as good.
func drop[K any](m *ebpf.Map, name string, keys []K) error {
	for i := range keys {
		if err := m.Delete(keys[i]); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("remove from table %s: %w", name, err)
		}
	}
	return nil
}

// outcomes of calls, in the order of sock.c.
var outcomes = []string{"resolved", "refused", "failed", "passed", "spent", "sticky", "forgotten", "untold"}

// kinds of rules, as many as counters have.
const kinds = 4

// Counters tells how often calls ended how since the tables were made.
func (p *Program) Counters() (map[sock.Kind]map[string]uint64, error) {
	out := map[sock.Kind]map[string]uint64{}
	for k := range kinds {
		of := map[string]uint64{}
		for i, name := range outcomes {
			var perCPU []uint64
			if err := p.maps.Counters.Lookup(uint32(k*len(outcomes)+i), &perCPU); err != nil {
				return nil, fmt.Errorf("read table counters: %w", err)
			}
			for _, n := range perCPU {
				of[name] += n
			}
		}
		out[sock.Kind(k)] = of
	}
	return out, nil
}
