// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"reflect"
	"testing"
	"time"
	"unsafe"
)

// Whatever of it a Service has is kept: a field that was forgotten in telling whether there is anything would be lost alone.
func TestARareThingAloneIsKept(t *testing.T) {
	full := Rare{
		Requested: []netip.Addr{{}}, External: []netip.Addr{{}}, SharingKey: "k", Affinity: time.Second, SourceRanges: []netip.Prefix{{}},
		Scheduler: "s", Advertisements: []AdvertisementName{"a"}, ByOthers: []netip.Addr{{}}, Probe: Probe{Type: "TCP"},
		Verdicts: []ProbeVerdict{{}}, ProbedSince: Revision{Epoch: 1},
	}
	for i := range reflect.TypeFor[Rare]().NumField() {
		var alone Rare
		of := reflect.ValueOf(full).Field(i)
		if of.IsZero() {
			t.Fatalf("%s is not tried", reflect.TypeFor[Rare]().Field(i).Name)
		}
		reflect.ValueOf(&alone).Elem().Field(i).Set(of)
		var s Service
		if s.SetRare(alone); s.Rare == nil || !reflect.DeepEqual(*s.Rare, alone) {
			t.Errorf("%s is lost", reflect.TypeFor[Rare]().Field(i).Name)
		}
		if s.SetRare(Rare{}); s.Rare != nil {
			t.Errorf("%s stays", reflect.TypeFor[Rare]().Field(i).Name)
		}
	}
}

// There are very many of these in memory, where a byte more can be sixteen.
func TestRowsFitTheirSizeClass(t *testing.T) {
	for what, size := range map[string][2]uintptr{
		"Service": {unsafe.Sizeof(Service{}), 208}, "Allocation": {unsafe.Sizeof(Allocation{}), 144}, "Route": {unsafe.Sizeof(Route{}), 128},
		"four endpoints": {4 * unsafe.Sizeof(Endpoint{}), 224},
	} {
		if size[0] > size[1] {
			t.Errorf("%s has %d bytes, more than %d", what, size[0], size[1])
		}
	}
}
