// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"reflect"
	"testing"
	"time"
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
