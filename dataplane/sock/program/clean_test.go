// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"reflect"
	"testing"

	"fairlead.io/fairlead/dataplane/sock"
)

// numbers are how many rows there are of what.
type numbers struct{ places, windows, slots, nodes, affinity, flows, sockets int }

func numbersOf(t *testing.T, p *Program) numbers {
	t.Helper()
	rows, err := p.Read()
	held, failed := p.Clients()
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return numbers{len(rows.Places), len(rows.Windows), len(rows.Slots), len(rows.Nodes), held["affinity"].Rows, held["flows"].Rows, held["records"].Rows}
}

// Balancing §21: a table is emptied whole, however many rows it has and whether or not they are full pages, and no other is touched.
// Rule: balancing §21.
func TestTablesAreCleanedWhole(t *testing.T) {
	l := newLab(t)
	p := l.open()
	const rows = 2*batch + 5
	c := sock.Change{PutPlaces: map[sock.Place]sock.Row{}, PutSlots: map[sock.SlotKey]sock.Slot{}}
	for i := range rows {
		var a [4]byte
		binary.BigEndian.PutUint32(a[:], uint32(i+1))
		at := sock.Place{Address: netip.AddrFrom4(a), Port: 80, Protocol: sock.TCP}
		c.PutPlaces[at], c.PutSlots[sock.SlotKey{Set: uint32(i)}] = sock.Row{}, sock.Slot{At: vip4}
		c.PutWindows, c.PutNodes = append(c.PutWindows, at), append(c.PutNodes, at.Address)
	}
	full := numbers{rows, rows, rows, rows, rows, rows, rows}
	for table, of := range map[string]func(*numbers){
		"places": func(n *numbers) { n.places, n.windows = 0, 0 }, "endpoints": func(n *numbers) { n.slots = 0 }, "nodes": func(n *numbers) { n.nodes = 0 },
		"affinity": func(n *numbers) { n.affinity = 0 }, "flows": func(n *numbers) { n.flows = 0 }, "sockets": func(n *numbers) { n.sockets = 0 },
	} {
		fill(t, p, rows, rows, rows)
		if err := p.Apply(c); err != nil {
			t.Fatal(err)
		}
		if got := numbersOf(t, p); got != full {
			t.Fatalf("filled with %+v, want %+v", got, full)
		}
		want := full
		of(&want)
		for _, r := range []int{rows, 0} {
			if n, err := Clean(l.pins, table); err != nil || n != r {
				t.Errorf("%s: %d rows removed (%v), want %d", table, n, err, r)
			}
		}
		if got := numbersOf(t, p); !reflect.DeepEqual(got, want) {
			t.Errorf("%s cleaned, and there are %+v, want %+v", table, got, want)
		}
	}
	if _, err := Clean(l.pins, "settings"); err == nil {
		t.Error("a table that there is not was cleaned")
	}
	if _, err := Clean(t.TempDir(), "places"); !errors.Is(err, ErrNothing) {
		t.Errorf("where no agent was: %v", err)
	}
}

// Balancing §21: who asks for a comparison is heard once, and what asks goes with everything else.
// Rule: balancing §21.
func TestComparisonIsAskedForOnce(t *testing.T) {
	l := newLab(t)
	p := l.open()
	if p.Asked() || Asks(l.pins) {
		t.Error("asked, and nobody did")
	}
	for range 2 {
		if err := Ask(l.pins); err != nil {
			t.Fatal(err)
		}
	}
	if !Asks(l.pins) || !p.Asked() || p.Asked() || Asks(l.pins) {
		t.Error("a comparison that was asked for twice before anybody looked is not heard once")
	}
	if err := Ask(l.pins); err != nil {
		t.Fatal(err)
	}
	if err := Remove(l.pins); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(l.pins); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("once removed there is %v (%v)", left, err)
	}
}
