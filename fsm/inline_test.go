// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

// What rows share stands in their JSON where it stood when each had its own; also where there is nothing of it, and also in rows that
// were read from a snapshot.
func TestWhatRowsShareStandsAmongTheirFields(t *testing.T) {
	s, index := New(), Index(0)
	apply := func(c Command) {
		t.Helper()
		index++
		for _, o := range s.ApplyEntries([]LogEntry{entry(t, s, index, c)})[0] {
			if o.Reject != Accepted {
				t.Fatal(o.Err())
			}
		}
	}
	apply(&InitGroup{Group: "g", Format: NewestFormat})
	first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	apply(&PutService{Service: Service{ID: "shop/a", UID: "u"}})
	apply(&Allocate{Address: first, Service: "shop/a"})
	apply(&Allocate{Address: second, Service: "shop/a", Pool: "p", Ports: []Port{{TCP, 80}}, SharingKey: "k"})
	apply(&SetRoute{Prefix: HostPrefix(first), Hops: []HopSpec{{"n1", netip.MustParseAddr("198.51.100.1")}}})
	want := `{"address":"192.0.2.1","service":"shop/a","ports":null,"releasing":false,"since":{"epoch":1,"index":3}}
{"address":"192.0.2.2","service":"shop/a","pool":"p","ports":[{"protocol":6,"number":80}],"sharingKey":"k","releasing":false,"since":{"epoch":1,"index":4}}
{"node":"n1","address":"198.51.100.1","since":{"epoch":1,"index":5},"withdrawing":false}
`
	for _, v := range []*View{s.Read(), restored(t, s).Read()} {
		var got strings.Builder
		show := json.NewEncoder(&got)
		for _, a := range List[*Allocation](v, TableAllocations) {
			if err := show.Encode(a); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range List[*Route](v, TableRoutes) {
			if err := show.Encode(r.NextHops[0]); err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != want {
			t.Errorf("rows are\n%swant\n%s", got.String(), want)
		}
	}
}

// Nothing of a row is missing where it points to nothing, as in one that is only about to be made.
func TestWhatRowsDoNotShareIsEmpty(t *testing.T) {
	if h := (NextHop{}); h.Node() != "" || h.Address().IsValid() || markOf(h) != (hopMark{}) {
		t.Errorf("the hop of nothing is %s %s", h.Node(), h.Address())
	}
	if a := (&Allocation{}); a.Pool() != "" || a.Ports() != nil || a.SharingKey() != "" {
		t.Errorf("the allocation of nothing is of %q, %v, %q", a.Pool(), a.Ports(), a.SharingKey())
	}
}

func restored(t *testing.T, s *State) *State {
	t.Helper()
	var kept bytes.Buffer
	if err := s.Freeze().Write(&kept); err != nil {
		t.Fatal(err)
	}
	again := New()
	if err := again.Restore(&kept); err != nil {
		t.Fatal(err)
	}
	return again
}
