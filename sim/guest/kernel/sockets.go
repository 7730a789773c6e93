// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"context"
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/sim/kernel/message"
)

// SocketRoom is what tables have room for that are made for so many places, 0 for the usual number.
func SocketRoom(places int) sock.Capacity { return sock.Capacity(message.RoomFor(places)) }

// Sock makes balancing at sockets over this kernel.
func (k *Kernel) Sock(o sock.Options) (*sock.Sock, error) {
	o.Sparing = k.sparing()
	return sock.Over(o, &tables{k})
}

// tables is the edge of sock. Calls to it have no context: those to a kernel end.
type tables struct{ kernel *Kernel }

// batch is how many rows are written in one call: few, so that a kill comes between any two now and then.
const batch = 8

// Read implements sock.Edge.
func (t *tables) Read() (sock.Rows, error) {
	rows := sock.NewRows()
	a, err := t.kernel.call(context.Background(), message.Request{Sockets: &message.Sockets{Read: true}})
	if err != nil || a.Sockets == nil {
		return rows, explain("read tables", err)
	}
	for _, r := range a.Sockets.PutPlaces {
		rows.Places[sock.Place(r.At)] = sock.Row{First: choiceOf(r.First), Then: choiceOf(r.Then)}
	}
	for _, s := range a.Sockets.PutSlots {
		rows.Slots[sock.SlotKey(s.Key)] = sock.Slot{At: s.At, ID: s.ID}
	}
	for _, n := range a.Sockets.PutNodes {
		rows.Nodes[n] = true
	}
	for _, w := range a.Sockets.PutWindows {
		rows.Windows[sock.Place(w)] = true
	}
	return rows, nil
}

// Apply implements sock.Edge: in the order of the fields, as that of the product does it.
func (t *tables) Apply(c sock.Change) error {
	var slots []message.Slot
	for _, k := range slices.SortedFunc(maps.Keys(c.PutSlots), compareSlots) {
		slots = append(slots, message.Slot{Key: message.SlotKey(k), At: c.PutSlots[k].At, ID: c.PutSlots[k].ID})
	}
	var rows []message.PlaceRow
	for _, at := range slices.SortedFunc(maps.Keys(c.PutPlaces), comparePlaces) {
		rows = append(rows, message.PlaceRow{At: message.Place(at), First: choice(c.PutPlaces[at].First), Then: choice(c.PutPlaces[at].Then)})
	}
	steps := []func() error{
		func() error {
			return inBatches(t, slots, func(s *message.Sockets, some []message.Slot) { s.PutSlots = some })
		},
		func() error {
			return inBatches(t, places(c.PutWindows), func(s *message.Sockets, some []message.Place) { s.PutWindows = some })
		},
		func() error {
			return inBatches(t, c.PutNodes, func(s *message.Sockets, some []netip.Addr) { s.PutNodes = some })
		},
		func() error {
			return inBatches(t, rows, func(s *message.Sockets, some []message.PlaceRow) { s.PutPlaces = some })
		},
		func() error {
			return inBatches(t, places(c.DropPlaces), func(s *message.Sockets, some []message.Place) { s.DropPlaces = some })
		},
		func() error {
			return inBatches(t, c.DropNodes, func(s *message.Sockets, some []netip.Addr) { s.DropNodes = some })
		},
		func() error {
			return inBatches(t, places(c.DropWindows), func(s *message.Sockets, some []message.Place) { s.DropWindows = some })
		},
		func() error {
			return inBatches(t, keys(c.DropSlots), func(s *message.Sockets, some []message.SlotKey) { s.DropSlots = some })
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return explain("write tables", err)
		}
	}
	return nil
}

func inBatches[T any](t *tables, rows []T, fill func(*message.Sockets, []T)) error {
	for some := range slices.Chunk(rows, batch) {
		var s message.Sockets
		fill(&s, some)
		if err := t.kernel.do(context.Background(), message.Request{Sockets: &s}); err != nil {
			return err
		}
	}
	return nil
}

// Attach implements sock.Edge.
func (t *tables) Attach() error {
	return explain("attach programs", t.kernel.do(context.Background(), message.Request{Sockets: &message.Sockets{Attach: true}}))
}

// Counters implements sock.Edge. The model counts nothing, and nobody asks.
func (t *tables) Counters() (map[sock.Kind]map[string]uint64, error) { return nil, nil }

func choice(c sock.Choice) message.Choice {
	return message.Choice{
		Rule: c.Rule, Set: c.Set, Count: c.Count, Affinity: c.Affinity, Verdict: uint8(c.Verdict), Kind: uint8(c.Kind), Mode: uint8(c.Mode),
		Limited: c.Limited, Spares: c.Spares,
	}
}

func choiceOf(c message.Choice) sock.Choice {
	return sock.Choice{
		Rule: c.Rule, Set: c.Set, Count: c.Count, Affinity: c.Affinity, Verdict: sock.Verdict(c.Verdict), Kind: sock.Kind(c.Kind), Mode: sock.Mode(c.Mode),
		Limited: c.Limited, Spares: c.Spares,
	}
}

func places(in []sock.Place) (out []message.Place) {
	for _, p := range in {
		out = append(out, message.Place(p))
	}
	return out
}

func keys(in []sock.SlotKey) (out []message.SlotKey) {
	for _, k := range in {
		out = append(out, message.SlotKey(k))
	}
	return out
}

func compareSlots(a, b sock.SlotKey) int {
	return cmp.Or(cmp.Compare(a.Set, b.Set), cmp.Compare(a.Index, b.Index))
}

func comparePlaces(a, b sock.Place) int {
	return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
}
