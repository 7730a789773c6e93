// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash/fnv"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/internal/weights"
)

func (k SlotKey) compare(o SlotKey) int {
	return cmp.Or(cmp.Compare(k.Set, o.Set), cmp.Compare(k.Index, o.Index))
}

// set is one that is in the tables, or on its way there. It never changes: another content is another set.
type set struct {
	id    uint32
	slots []Slot // by turn
	ids   []Slot // by identity, each backend once; only where backends are remembered
	users int    // fronts
}

// size is how many rows it takes.
func (s *set) size() int { return len(s.slots) + len(s.ids) }

// each calls f with every row.
func (s *set) each(f func(SlotKey, Slot)) {
	for i, slot := range s.slots {
		f(SlotKey{s.id, uint32(i)}, slot)
	}
	for _, slot := range s.ids {
		f(SlotKey{s.id, member | slot.ID}, slot)
	}
}

// content is what is in a set: two of one content are one set. Large sets are told apart by a hash of all of it.
type content [sha256.Size]byte

func (s *set) content() content {
	b := make([]byte, 0, 24*len(s.slots)+1)
	b = append(b, byte(min(len(s.ids), 1)))
	for _, slot := range s.slots {
		a := slot.At.Addr().As16()
		b = append(b, a[:]...)
		b = binary.BigEndian.AppendUint16(b, slot.At.Port())
		b = binary.BigEndian.AppendUint32(b, slot.ID)
	}
	return sha256.Sum256(b)
}

// mostTurns bounds how many slots the backends of one set have beyond one each: what 1:100 needs, and shares within
// a hundredth for what is finer.
const mostTurns = 1024

// remembers is whether backends of a front are asked for by identity: to keep a client, or a flow of datagrams, at one.
func (f *Front) remembers() bool { return f.Affinity > 0 || f.Protocol == UDP }

// setOf lays the backends of a front out, in an order that does not depend on theirs. There is at least one.
func setOf(f *Front) *set {
	backends := slices.Clone(f.Backends)
	for i := range backends {
		backends[i].At = netip.AddrPortFrom(backends[i].At.Addr().Unmap(), backends[i].At.Port())
	}
	slices.SortFunc(backends, func(a, b Backend) int { return a.At.Compare(b.At) })
	s := &set{}
	var each []uint32
	taken := map[uint32]bool{}
	for i, b := range backends {
		w := uint32(max(b.Weight, 1))
		if i > 0 && backends[i-1].At == b.At {
			each[len(each)-1] += w
			continue
		}
		each = append(each, w)
		s.ids = append(s.ids, Slot{b.At, identity(b.At, taken)})
	}
	s.slots = s.ids
	if reduced := weights.Reduce(each); reduced != nil {
		s.slots = nil
		for _, i := range weights.Deal(reduced, max(len(reduced), weights.Slots(reduced, max(mostTurns, 4*len(reduced))))) {
			s.slots = append(s.slots, s.ids[i])
		}
	}
	if !f.remembers() {
		s.ids = nil
	}
	return s
}

// identity is the number by which a backend is remembered: that of another set, and of another life of the agent, too,
// unless two of one set collide.
func identity(at netip.AddrPort, taken map[uint32]bool) uint32 {
	h := fnv.New32a()
	a := at.Addr().As16()
	h.Write(a[:])
	h.Write(binary.BigEndian.AppendUint16(nil, at.Port()))
	id := h.Sum32() &^ member
	for taken[id] {
		id = (id + 1) &^ member
	}
	taken[id] = true
	return id
}
