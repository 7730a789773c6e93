// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"context"
	"runtime"
	"testing"
	"weak"
)

// A view of some tables shows these, can be waited and compared with, and holds nothing of the others.
func TestOnlyShowsAndHoldsSomeTables(t *testing.T) {
	s := New()
	put := func(at Index, c Command) {
		t.Helper()
		if o := s.ApplyEntries([]LogEntry{entry(t, s, at, c)})[0][0]; o.Reject != Accepted {
			t.Fatal(o.Err())
		}
	}
	put(1, &InitGroup{Group: "g", Format: NewestFormat})
	put(2, &PutNode{ID: "n1"})
	put(3, &PutService{Service: Service{ID: "shop/web", UID: "u"}})
	all := s.Read()
	some := all.Only(TableGroup, TableNodes)
	if some.Revision() != all.Revision() || some.Count(TableNodes) != 1 || some.Count(TableServices) != 0 || len(List[*Service](some, TableServices)) != 0 {
		t.Errorf("at %s with %d nodes and %d Services", some.Revision(), some.Count(TableNodes), some.Count(TableServices))
	}
	if _, ok := Get[*Service](some, TableServices, "shop/web"); ok {
		t.Error("it has a Service")
	}
	row, _ := Get[*Service](all, TableServices, "shop/web")
	old := weak.Make(row)
	row, all = nil, nil
	put(4, &PutService{Service: Service{ID: "shop/web", UID: "u", Local: true}})
	if runtime.GC(); old.Value() != nil {
		t.Error("it holds a Service that was replaced")
	}
	if now := s.Read(); Differ(some, now, TableNodes) || s.Changed(some, TableNodes) || !s.Changed(some, TableServices) {
		t.Error("the nodes changed, or no Service did")
	}
	put(5, &PutNode{ID: "n2"})
	came := 0
	Changes(some, s.Read(), TableNodes, func(before, after *Node) { came++ })
	if err := s.Wait(context.Background(), some, TableNodes); err != nil || came != 1 {
		t.Errorf("%d nodes changed, waiting: %v", came, err)
	}
	runtime.KeepAlive(some)
}
