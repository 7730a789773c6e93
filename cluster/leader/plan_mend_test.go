// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/wire"
)

// unchecked applies commands as a member of a release wrote them into the log that checked nothing.
func (g *group) unchecked(cs ...fsm.Command) {
	g.t.Helper()
	v := g.state.Read()
	e := fsm.Entry{Epoch: v.Group().Epoch}
	for _, c := range cs {
		body, err := wire.Append(nil, c)
		if err != nil {
			g.t.Fatalf("%T: %v", c, err)
		}
		e.Items = append(e.Items, fsm.Item{Kind: c.Kind(), Actor: "earlier", Body: body})
	}
	data, err := wire.Append(nil, &e)
	if err != nil {
		g.t.Fatalf("%v", err)
	}
	for i, o := range g.state.ApplyEntries([]fsm.LogEntry{{Index: v.Applied() + 1, Term: 1, Data: data}})[0] {
		if err := o.Err(); err != nil {
			g.t.Fatalf("%T: %.200s", cs[i], err.Error())
		}
	}
}

// What an earlier release took into the record that this one would not, as a text that is too long or the zone of an address that is none,
// stops nothing: all else is planned beside it, what it belongs to can be judged down, mended and taken away, and nothing is set aside
// again and again. The members come to it by their log and by a snapshot alike.
func TestWhatAnEarlierReleaseTookInStopsNothing(t *testing.T) {
	for _, way := range []string{"log", "snapshot"} {
		t.Run(way, func(t *testing.T) {
			s := newScene(t)
			long, foul := strings.Repeat("x", 1<<20), netip.MustParseAddr("fe80::1").WithZone("\xff\xfe")
			zone := func(text string) []netip.Addr { return []netip.Addr{foul, netip.MustParseAddr(text)} }
			shared, held := netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("203.0.113.8")
			s.group.unchecked(
				&fsm.PutNode{ID: "zoned", UID: "zoned-uid", Eligible: true, Addresses: zone("192.0.2.7"), Others: zone("198.51.100.7")},
				&fsm.PutNode{ID: "booted", UID: "booted-uid", Eligible: true, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.8")}},
				&fsm.RegisterBoot{Node: "booted", Boot: fsm.BootID(long)},
				&fsm.PutService{Service: fsm.Service{ID: "default/shares", UID: "u1", Rare: &fsm.Rare{SharingKey: long}}},
				&fsm.Allocate{Address: shared, Service: "default/shares", SharingKey: long, Pool: "p"},
				&fsm.PutService{Service: fsm.Service{
					ID: "default/zoned", UID: "u2", ClusterIPs: zone("10.96.0.9"), Endpoints: []fsm.Endpoint{{Address: foul, Ready: true}},
					Rare: &fsm.Rare{Requested: zone("203.0.113.8"), External: []netip.Addr{foul}, ByOthers: []netip.Addr{foul}},
				}},
				&fsm.Allocate{Address: held, Service: "default/zoned", Pool: "p"}, // to be taken back, once that is gone
			)
			if way == "snapshot" {
				var out strings.Builder
				if err := s.group.state.Freeze().Write(&out); err != nil {
					t.Fatal(err)
				}
				digest := s.group.state.Digest()
				s.group.state = fsm.New()
				if err := s.group.state.Restore(strings.NewReader(out.String())); err != nil || s.group.state.Digest() != digest {
					t.Fatalf("restored as %s, not %s: %v", s.group.state.Digest(), digest, err)
				}
			}

			// No source shows these objects any more as they are, since they cannot be used; others come.
			for _, kept := range []string{"node zoned", "node booted", "service shares", "service zoned"} {
				s.kept[kept] = true
			}
			s.line("node n1 192.0.2.1")
			s.line("pool p 203.0.113.1-203.0.113.9")
			s.line("service good")
			s.line("endpoints good n1/10.0.0.1")
			s.group.settle(s.input())
			if have := hopsOf(s.group.state.Read(), "203.0.113.1"); have != "n1=wanted " {
				t.Fatalf("beside them: %q", have)
			}

			// Who judges nodes names the boot.
			node, _ := fsm.Get[*fsm.Node](s.group.state.Read(), fsm.TableNodes, "booted")
			s.group.must(&fsm.SetLiveness{Node: "booted", Boot: node.Boot, Liveness: fsm.NodeDown})
			s.group.settle(s.input())

			// They are gone: nothing of them is left.
			clear(s.kept)
			s.group.settle(s.input())
			v := s.group.state.Read()
			if n, m := v.Count(fsm.TableNodes), v.Count(fsm.TableServices); n != 1 || m != 1 || len(v.Owners(shared.String())) != 0 {
				t.Fatalf("%d nodes, %d Services, %s has %d owners", n, m, shared, len(v.Owners(shared.String())))
			}
		})
	}
}
