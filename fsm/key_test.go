// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"cmp"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// A record is beside a key where its own key is, which is not always made for that.
func TestPropertyRecordsAreComparedByTheirKeys(t *testing.T) {
	address := rapid.Custom(func(t *rapid.T) netip.Addr {
		list := []string{"", "10.0.0.1", "10.0.0.10", "10.0.0.9", "192.0.2.255", "2001:db8::1", "2001:db8::10", "::", "::ffff:192.0.2.1", "fe80::1%eth0"}
		a, _ := netip.ParseAddr(rapid.SampledFrom(list).Draw(t, "address"))
		return a
	})
	record := rapid.Custom(func(t *rapid.T) Record {
		name := rapid.SampledFrom([]string{"", "a/b", "a/b-c", "b/a", strings.Repeat("n", keyRoom)}).Draw(t, "name")
		a := address.Draw(t, "address")
		return rapid.SampledFrom([]Record{
			&Allocation{Address: a, Service: ServiceID(name)}, &Route{Prefix: netip.PrefixFrom(a, a.BitLen())}, &Lease{VIP: a},
			&Service{ID: ServiceID(name)}, &Grave{Of: TableServices, Name: name},
		}).Draw(t, "record")
	})
	testkit.Check(t, func(t *rapid.T) {
		r, key := record.Draw(t, "one"), record.Draw(t, "other").Key()
		if have, want := compareKey(r, key), cmp.Compare(r.Key(), key); have != want {
			t.Fatalf("%q beside %q: %d, want %d", r.Key(), key, have, want)
		}
	})
}

// To look up a record makes no garbage, of whatever kind there are very many.
func TestLookingUpMakesNoGarbage(t *testing.T) {
	live, address := newRows(), netip.MustParseAddr("203.0.113.7")
	records := []Record{
		&Allocation{Address: address, Service: "shop/a"}, &Route{Prefix: HostPrefix(address)}, &Lease{VIP: address}, &Service{ID: "shop/a"},
		&Binding{ID: "shop/a"}, &Grave{Of: TableBindings, Name: "shop/a"},
	}
	for _, r := range records {
		live.tables[r.Table()].put(r)
	}
	for _, of := range []*rows{live, live.freeze(nil, nil)} {
		for _, r := range records {
			key, table := r.Key(), of.tables[r.Table()]
			if n := testing.AllocsPerRun(10, func() { table.get(key) }); n != 0 {
				t.Errorf("a look at %s %s makes %v objects", r.Table(), key, n)
			}
		}
	}
}
