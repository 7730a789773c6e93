// SPDX-License-Identifier: Apache-2.0

package check

import (
	"maps"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/sim/event"
)

// socketTables are what the tables at a node's sockets say.
type socketTables struct {
	boot     string
	attached bool // programs work by them
	nodes    map[netip.Addr]bool
	rows     map[dialled]socketRow
	ever     map[dialled]bool // that any boot had a row for
}

// socketRow is a row, and the event that said so.
type socketRow struct {
	event.Resolves
	number uint64
}

// tables are those of a node.
func (s *scene) tables(node string) *socketTables {
	t := s.sockets[node]
	if t == nil {
		t = &socketTables{ever: map[dialled]bool{}}
		t.empty("")
		s.sockets[node] = t
	}
	return t
}

// empty is what a boot leaves of them.
func (t *socketTables) empty(boot string) {
	t.boot, t.attached, t.nodes, t.rows = boot, false, map[netip.Addr]bool{}, map[dialled]socketRow{}
}

func (t *socketTables) places() []dialled { return slices.SortedFunc(maps.Keys(t.rows), comparePlaces) }

// of gives the tables of a boot of a node.
func (s *scene) of(node, boot string) *socketTables {
	t := s.tables(node)
	if t.boot != boot {
		t.empty(boot)
	}
	return t
}

func (s *scene) resolves(number uint64, x event.Resolves) {
	t, at := s.of(x.Node, x.Boot), dialled{x.Address, x.Port, x.Protocol}
	if t.ever[at] = true; x.There {
		t.rows[at] = socketRow{x, number}
	} else {
		delete(t.rows, at)
	}
}

func (s *scene) programs(x event.Programs) {
	t := s.of(x.Node, x.Boot)
	t.attached, t.nodes = x.Attached, map[netip.Addr]bool{}
	for _, a := range x.Nodes {
		t.nodes[a] = true
	}
}

// row is the one that decides about a call, which may be that of a node port.
func (t *socketTables) row(at dialled) (socketRow, bool) {
	row, ok := t.rows[at]
	if !ok && t.nodes[at.address] {
		any := anyNode6
		if at.address.Is4() {
			any = anyNode4
		}
		row, ok = t.rows[dialled{any, at.port, at.protocol}]
	}
	return row, ok && t.attached
}
