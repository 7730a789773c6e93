// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/internal/testkit"
)

// Balancing §18: an agent that is gone, and one that takes over, are not noticed: not by who connects meanwhile, and not by
// who is connected. That holds, too, where the next one has tables of other sizes.
// Rule: balancing §18.
func TestTheNextAgentTakesOver(t *testing.T) {
	for name, sizes := range map[string]Sizes{"as before": DefaultSizes, "other sizes": {sock.Capacity{Places: 100, Slots: 1000, Nodes: 10}, 50, 50, 500}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			first := l.open()
			var all []*server
			for range 8 {
				all = append(all, serve(t, "tcp4", "127.0.0.1"))
			}
			f := front(sock.TCP, vip4, all...)
			f.Affinity = time.Hour
			want := sock.Want{Rules: []*sock.Rule{service(1, f)}}
			l.tables(first).hold(want)
			connect := call{Op: "connect", Net: "tcp4", To: vip4, Keep: true}
			before := l.client.do(connect)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			if r := l.client.do(connect); r != before || r.Error != "" {
				t.Errorf("without an agent: %+v, before: %+v", r, before)
			}
			o := l.options()
			o.Sizes = sizes
			second, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			if r := l.client.do(connect); r != before {
				t.Errorf("while the next agent starts: %+v, before: %+v", r, before)
			}
			if err := second.Set(Settings{IPv4: true}); err != nil {
				t.Fatal(err)
			}
			l.tables(second).hold(want)
			if err := second.Attach(); err != nil {
				t.Fatal(err)
			}
			if r := l.client.do(connect); r != before {
				t.Errorf("with the next agent: %+v, before: %+v", r, before)
			}
			if r := l.client.do(call{Op: "peers"}); r.Said != strings.TrimSpace(strings.Repeat(vip4.String()+" ", 4)) {
				t.Errorf("connections of before see peers %s", r.Said)
			}
			folders, err := filepath.Glob(filepath.Join(l.pins, "tables-*"))
			if err != nil || len(folders) != 1 {
				t.Errorf("tables are %v (%v)", folders, err)
			}
			if err := Remove(l.pins); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(l.pins); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("once removed there is %v (%v)", left, err)
			}
		})
	}
}

// What was written is what is read, in both families.
func TestPropertyRowsAreReadAsWritten(t *testing.T) {
	l := newLab(t)
	p := l.open()
	address := rapid.Custom(func(t *rapid.T) netip.Addr {
		if rapid.Bool().Draw(t, "v4") {
			return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "bytes")))
		}
		return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))).Unmap()
	})
	place := rapid.Custom(func(t *rapid.T) sock.Place {
		return sock.Place{Address: address.Draw(t, "address"), Port: rapid.Uint16().Draw(t, "port"), Protocol: rapid.SampledFrom([]uint8{sock.TCP, sock.UDP}).Draw(t, "protocol")}
	})
	choice := rapid.Custom(func(t *rapid.T) sock.Choice {
		return sock.Choice{
			Rule: rapid.Uint32().Draw(t, "rule"), Set: rapid.Uint32().Draw(t, "set"), Count: rapid.Uint32().Draw(t, "count"),
			Affinity: rapid.Uint32().Draw(t, "affinity"), Verdict: sock.Verdict(rapid.ByteRange(0, 3).Draw(t, "verdict")),
			Kind: sock.Kind(rapid.ByteRange(0, 3).Draw(t, "kind")), Mode: sock.Mode(rapid.Byte().Draw(t, "mode")),
			Limited: rapid.Bool().Draw(t, "limited"), Spares: rapid.Bool().Draw(t, "spares"),
		}
	})
	testkit.Check(t, func(t *rapid.T) {
		c := sock.Change{PutPlaces: map[sock.Place]sock.Row{}, PutSlots: map[sock.SlotKey]sock.Slot{}}
		for _, at := range rapid.SliceOfNDistinct(place, 0, 5, rapid.ID).Draw(t, "places") {
			c.PutPlaces[at] = sock.Row{First: choice.Draw(t, "first"), Then: choice.Draw(t, "then")}
			c.PutWindows = append(c.PutWindows, at)
		}
		c.PutNodes = rapid.SliceOfNDistinct(address, 0, 5, rapid.ID).Draw(t, "nodes")
		for range rapid.IntRange(0, 5).Draw(t, "slots") {
			key := sock.SlotKey{Set: rapid.Uint32().Draw(t, "set"), Index: rapid.Uint32().Draw(t, "index")}
			c.PutSlots[key] = sock.Slot{At: netip.AddrPortFrom(address.Draw(t, "backend"), rapid.Uint16().Draw(t, "port")), ID: rapid.Uint32().Draw(t, "id")}
		}
		want := sock.NewRows()
		want.Apply(c)
		if err := p.Apply(c); err != nil {
			t.Fatal(err)
		}
		have, err := p.Read()
		if err != nil || !reflect.DeepEqual(have, want) {
			t.Fatalf("wrote %+v, read %+v (%v)", want, have, err)
		}
		var gone sock.Change
		for at := range want.Places {
			gone.DropPlaces, gone.DropWindows = append(gone.DropPlaces, at), append(gone.DropWindows, at)
		}
		for k := range want.Slots {
			gone.DropSlots = append(gone.DropSlots, k)
		}
		gone.DropNodes = c.PutNodes
		if err := p.Apply(gone); err != nil {
			t.Fatal(err)
		}
		if have, err := p.Read(); err != nil || !reflect.DeepEqual(have, sock.NewRows()) {
			t.Fatalf("all was removed, and %+v is there (%v)", have, err)
		}
	})
}

// Balancing §16.1, §25: what is not as it has to be is said in one line, and traffic stays as it is.
// Rule: balancing §25.
func TestWhatLacksIsSaid(t *testing.T) {
	l := newLab(t)
	here, there := l.options(), t.TempDir()
	for want, o := range map[string]Options{
		"is not a folder of cgroup v2": {Cgroup: there, Pins: here.Pins},
		"is not on a bpffs":            {Cgroup: here.Cgroup, Pins: filepath.Join(there, "pins")},
		"no such file":                 {Cgroup: filepath.Join(here.Cgroup, "none"), Pins: here.Pins},
		"pin directory":                {Cgroup: here.Cgroup, Pins: "/proc/none"},
	} {
		p, err := Open(o)
		if err == nil {
			_ = p.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// Balancing §16.3: a table that is full says how much room it has.
// Rule: balancing §16.
func TestFullTableSaysSo(t *testing.T) {
	l := newLab(t)
	o := l.options()
	o.Sizes = Sizes{sock.Capacity{Places: 1, Slots: 1, Nodes: 1}, 1, 1, 1}
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	err = p.Apply(sock.Change{PutSlots: map[sock.SlotKey]sock.Slot{{Set: 1}: {At: vip4}, {Set: 2}: {At: vip4}}})
	if err == nil || !strings.Contains(err.Error(), "write table slots: it has room for 1 rows") {
		t.Errorf("two rows in a table of one: %v", err)
	}
}
