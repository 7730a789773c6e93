// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel/message"
)

// sockets are the tables of the programs at sockets. They outlive processes, and go when the node boots, as what is pinned does.
//
// Rows are written one at a time, and programs run between any two: no row may ever name what is not there, nor may a set change while a row
// names it.
type sockets struct {
	attached bool
	places   map[message.Place]message.PlaceRow
	slots    map[message.SlotKey]message.Slot
	nodes    map[netip.Addr]bool
	windows  map[message.Place]bool
	users    map[uint32]int // of sets
}

func newSockets() sockets {
	return sockets{
		places: map[message.Place]message.PlaceRow{}, slots: map[message.SlotKey]message.Slot{}, nodes: map[netip.Addr]bool{},
		windows: map[message.Place]bool{}, users: map[uint32]int{},
	}
}

// tooBig is the errno of a table that is full.
const tooBig = "E2BIG"

// socket is one call about the tables.
func (k *Kernel) socket(r message.Sockets) message.Answer {
	switch {
	case r.Read:
		return message.Answer{Sockets: k.sockets.dump()}
	case r.Attach:
		if !k.sockets.attached {
			k.sockets.attached = true
			k.publishPrograms()
		}
		return message.Answer{}
	case len(r.Cgroups) > 0:
		return message.Answer{Cgroups: k.cgroups.find(r.Cgroups)}
	case r.Spares:
		k.spare(r.Spare)
		return message.Answer{}
	}
	for write := range k.writes(r) {
		if name := write(); name != "" {
			return message.Answer{Error: name}
		}
	}
	return message.Answer{}
}

// part carries a call out in part that is to fail.
func (k *Kernel) part(r message.Sockets) {
	if r.Read || r.Attach {
		return
	}
	left := k.random.IntN(r.Adds() + 1)
	for write := range k.writes(r) {
		if left--; left < 0 || write() != "" {
			return
		}
	}
}

// writes are the rows of a call, each as what writes it and gives an errno.
func (k *Kernel) writes(r message.Sockets) func(yield func(func() string) bool) {
	s := &k.sockets
	return func(yield func(func() string) bool) {
		_ = each(r.PutSlots, k.putSlot, yield) &&
			each(r.PutWindows, func(at message.Place) string { return put(s.windows, at, true, k.o.Room.Places) }, yield) &&
			each(r.PutNodes, k.putNode, yield) &&
			each(r.PutPlaces, k.putPlace, yield) &&
			each(r.DropPlaces, k.dropPlace, yield) &&
			each(r.DropNodes, k.dropNode, yield) &&
			each(r.DropWindows, k.dropWindow, yield) &&
			each(r.DropSlots, k.dropSlot, yield)
	}
}

func each[T any](rows []T, write func(T) string, yield func(func() string) bool) bool {
	for _, row := range rows {
		if !yield(func() string { return write(row) }) {
			return false
		}
	}
	return true
}

// put writes a row where there is room.
func put[K comparable, V any](table map[K]V, key K, row V, room int) string {
	if _, there := table[key]; !there && len(table) >= room {
		return tooBig
	}
	table[key] = row
	return ""
}

func (k *Kernel) putSlot(row message.Slot) string {
	s := &k.sockets
	if was, there := s.slots[row.Key]; s.users[row.Key.Set] > 0 && (!there || was != row) {
		return k.refuse("a slot", fmt.Sprintf("set %d is in use, and changes at %d", row.Key.Set, row.Key.Index))
	}
	return put(s.slots, row.Key, row, k.o.Room.Slots)
}

func (k *Kernel) dropSlot(key message.SlotKey) string {
	if k.sockets.users[key.Set] > 0 {
		return k.refuse("that a slot goes", fmt.Sprintf("set %d is in use", key.Set))
	}
	delete(k.sockets.slots, key)
	return ""
}

func (k *Kernel) putNode(a netip.Addr) string {
	if k.sockets.nodes[a] {
		return ""
	}
	name := put(k.sockets.nodes, a, true, k.o.Room.Nodes)
	k.publishPrograms()
	return name
}

func (k *Kernel) dropNode(a netip.Addr) string {
	if k.sockets.nodes[a] {
		delete(k.sockets.nodes, a)
		k.publishPrograms()
	}
	return ""
}

func (k *Kernel) dropWindow(at message.Place) string {
	if row, there := k.sockets.places[at]; there && row.First.Limited {
		return k.refuse("that a window goes", "calls to "+placeText(at)+" are limited")
	}
	delete(k.sockets.windows, at)
	return ""
}

func (k *Kernel) putPlace(row message.PlaceRow) string {
	s := &k.sockets
	for _, c := range []message.Choice{row.First, row.Then} {
		if why := s.fault(row.At, c); why != "" {
			return k.refuse("a row of "+placeText(row.At), why)
		}
	}
	was, there := s.places[row.At]
	if name := put(s.places, row.At, row, k.o.Room.Places); name != "" {
		return name
	}
	s.use(row, 1)
	if there {
		s.use(was, -1)
	}
	before, now := s.resolves(was), s.resolves(row)
	if !there || !reflect.DeepEqual(before, now) {
		k.publishPlace(now)
	}
	return ""
}

func (k *Kernel) dropPlace(at message.Place) string {
	was, there := k.sockets.places[at]
	if there {
		delete(k.sockets.places, at)
		k.sockets.use(was, -1)
		k.publishPlace(event.Resolves{Address: at.Address, Port: at.Port, Protocol: protocolText(at.Protocol)})
	}
	return ""
}

// use counts the rows that name a set.
func (s *sockets) use(row message.PlaceRow, by int) {
	for _, c := range []message.Choice{row.First, row.Then} {
		if c.Verdict != use {
			continue
		}
		if s.users[c.Set] += by; s.users[c.Set] == 0 {
			delete(s.users, c.Set)
		}
	}
}

// use is the verdict that a slot is drawn.
const use = 1

var verdicts = []string{"pass", "use", "refuse", "unreachable"}

// fault tells why a row of a place cannot say this.
func (s *sockets) fault(at message.Place, c message.Choice) string {
	switch {
	case int(c.Verdict) >= len(verdicts):
		return fmt.Sprintf("verdict %d is none", c.Verdict)
	case c.Verdict != 0 && c.Rule == 0:
		return "it is nobody's"
	case c.Limited && !s.windows[at]:
		return "calls are limited, and nobody counts them"
	case c.Verdict != use:
		return ""
	case c.Count == 0:
		return "it leads to no slot"
	}
	for i := range c.Count {
		slot, there := s.slots[message.SlotKey{Set: c.Set, Index: i}]
		if !there {
			return fmt.Sprintf("it names %d slots of set %d, which lacks %d", c.Count, c.Set, i)
		}
		if slot.At.Addr().Is4() != at.Address.Is4() {
			return fmt.Sprintf("slot %d of set %d, %s, is of another family", i, c.Set, slot.At)
		}
		byID, there := s.slots[message.SlotKey{Set: c.Set, Index: message.Member | slot.ID}]
		if remembered := c.Affinity > 0 || at.Protocol == 17; (remembered || there) && (byID.At != slot.At || byID.ID != slot.ID) {
			return fmt.Sprintf("slot %d of set %d is remembered by %d, and not found by that", i, c.Set, slot.ID)
		}
	}
	return ""
}

// resolves is what a row says of calls.
func (s *sockets) resolves(row message.PlaceRow) event.Resolves {
	e := event.Resolves{
		Address: row.At.Address, Port: row.At.Port, Protocol: protocolText(row.At.Protocol), There: true, Way: s.way(row.First),
	}
	if e.Limited = row.First.Limited; e.Limited || row.First.Spares {
		e.Beyond = s.way(row.Then)
	}
	return e
}

func (s *sockets) way(c message.Choice) event.Way {
	w := event.Way{Verdict: verdicts[c.Verdict], Rule: c.Rule, Spares: c.Spares}
	if c.Verdict == use {
		for i := range c.Count {
			w.Backends = append(w.Backends, s.slots[message.SlotKey{Set: c.Set, Index: i}].At.String())
		}
		slices.Sort(w.Backends)
	}
	return w
}

func (k *Kernel) publishPlace(e event.Resolves) {
	e.Node, e.Boot = k.o.Node, k.boot
	k.world.Publish(e)
}

func (k *Kernel) publishPrograms() {
	k.world.Publish(event.Programs{
		Node: k.o.Node, Boot: k.boot, Attached: k.sockets.attached, Nodes: slices.SortedFunc(maps.Keys(k.sockets.nodes), netip.Addr.Compare),
	})
}

// dump is all there is, in order.
func (s *sockets) dump() *message.Sockets {
	out := &message.Sockets{}
	for _, at := range slices.SortedFunc(maps.Keys(s.places), comparePlaces) {
		out.PutPlaces = append(out.PutPlaces, s.places[at])
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.slots), func(a, b message.SlotKey) int {
		return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Index, b.Index))
	}) {
		out.PutSlots = append(out.PutSlots, s.slots[key])
	}
	out.PutNodes = slices.SortedFunc(maps.Keys(s.nodes), netip.Addr.Compare)
	out.PutWindows = slices.SortedFunc(maps.Keys(s.windows), comparePlaces)
	return out
}

func comparePlaces(a, b message.Place) int {
	return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
}

func placeText(p message.Place) string {
	return fmt.Sprintf("%s/%s", netip.AddrPortFrom(p.Address, p.Port), protocolText(p.Protocol))
}

func protocolText(p uint8) string {
	if p == 17 {
		return "UDP"
	}
	return "TCP"
}
