// SPDX-License-Identifier: Apache-2.0

package alike

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// apart gives a text in memory of its own.
func apart(text string) string { return strings.Clone(text) }

func drawKVs(t *rapid.T) []world.KV {
	var out []world.KV
	for i := range rapid.IntRange(0, 3).Draw(t, "labels") {
		out = append(out, world.KV{Key: fmt.Sprint("k", i), Value: apart(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "value"))})
	}
	return out
}

func drawService(t *rapid.T) *world.Service {
	word := func() string { return apart(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "word")) }
	addresses := func() (out []netip.Addr) {
		for i := range rapid.IntRange(0, 2).Draw(t, "addresses") {
			out = append(out, netip.AddrFrom4([4]byte{192, 0, 2, byte(10*i + rapid.IntRange(0, 1).Draw(t, "address"))}))
		}
		return out
	}
	s := &world.Service{Meta: world.Meta{ID: world.ID{Namespace: word(), Name: word()}}, Labels: drawKVs(t)}
	s.ClusterIPs, s.ExternalIPs, s.Shown = addresses(), addresses(), addresses()
	if rapid.Bool().Draw(t, "has more") {
		s.Extra = &world.Extra{Pool: word(), Class: word(), Annotations: drawKVs(t), Requested: addresses(), Proxied: addresses(), Affinity: rapid.SampledFrom([]time.Duration{0, 1}).Draw(t, "affinity")}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "ports") {
		s.Ports = append(s.Ports, world.ServicePort{Name: word(), TargetPort: word(), Port: uint16(80 + i)})
	}
	return s
}

func drawHints(t *rapid.T) (out []world.Hint) {
	for range rapid.IntRange(0, 3).Draw(t, "hints") {
		out = append(out, world.Hint{Zone: apart(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone"))})
	}
	return out
}

func drawSlice(t *rapid.T) *world.EndpointSlice {
	word := func() string { return apart(rapid.SampledFrom([]string{"", "a", "a-b"}).Draw(t, "word")) }
	s := &world.EndpointSlice{Meta: world.Meta{ID: world.ID{Namespace: word(), Name: word()}}, ServiceName: word()}
	for i := range rapid.IntRange(0, 3).Draw(t, "ports") {
		s.Ports = append(s.Ports, world.EndpointPort{Name: word(), Port: uint16(80 + i)})
	}
	for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
		s.Endpoints = append(s.Endpoints, world.Endpoint{Pod: word(), Place: &world.Place{Node: word(), Zone: word(), Hints: drawHints(t)}})
	}
	return s
}

func drawPod(t *rapid.T) *world.Pod {
	word := func() string { return apart(rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "word")) }
	p := &world.Pod{Meta: world.Meta{ID: world.ID{Namespace: word(), Name: word()}}, Node: word(), Labels: drawKVs(t)}
	for i := range rapid.IntRange(0, 3).Draw(t, "ports") {
		p.Ports = append(p.Ports, world.PodPort{Name: word(), Port: uint16(80 + i)})
	}
	return p
}

// What values share changes nothing of what they say, whatever comes after them.
func TestPropertyValuesThatShareSayTheSame(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var w world.World
		for range rapid.IntRange(1, 8).Draw(t, "objects") {
			w.Services, w.EndpointSlices, w.Pods = append(w.Services, drawService(t)), append(w.EndpointSlices, drawSlice(t)), append(w.Pods, drawPod(t))
		}
		want := w.Clone()
		var table Table
		for i := range w.Services {
			for _, v := range []any{w.Services[i], w.EndpointSlices[i], w.Pods[i]} {
				table.Same(v)
			}
		}
		if !reflect.DeepEqual(w.Clone(), want) {
			t.Fatalf("%+v, want %+v", w, want)
		}
	})
}

func TestEqualPartsOfPodsAreThereOnce(t *testing.T) {
	var table Table
	pod := func(name string) *world.Pod {
		p := &world.Pod{Meta: world.Meta{ID: world.ID{Namespace: apart("shop"), Name: name}}, Node: apart("n1"),
			Labels: []world.KV{{Key: apart("app"), Value: apart("web")}}, Ports: []world.PodPort{{Name: apart("http"), Port: 8080}}}
		table.Same(p)
		return p
	}
	a, b := pod("a"), pod("b")
	for what, same := range map[string]bool{
		"namespace": unsafe.StringData(a.Namespace) == unsafe.StringData(b.Namespace),
		"node":      unsafe.StringData(a.Node) == unsafe.StringData(b.Node),
		"labels":    &a.Labels[0] == &b.Labels[0],
		"ports":     &a.Ports[0] == &b.Ports[0],
	} {
		if !same {
			t.Errorf("%s: there twice", what)
		}
	}
}

func TestAddressesOfServiceAreThereOnce(t *testing.T) {
	vip := func() []netip.Addr { return []netip.Addr{netip.MustParseAddr("192.0.2.10")} }
	s := &world.Service{ExternalIPs: vip(), Shown: vip(), Extra: &world.Extra{Proxied: vip()}}
	new(Table).Same(s)
	if &s.Shown[0] != &s.ExternalIPs[0] || &s.Extra.Proxied[0] != &s.ExternalIPs[0] {
		t.Error("there more than once")
	}
	if more := append(s.Shown, netip.Addr{}); &more[0] == &s.ExternalIPs[0] {
		t.Error("one that is appended to has another's room")
	}
}

func TestEndpointsOfNodeShareTheirPlace(t *testing.T) {
	var table Table
	place := func(hints ...string) *world.Place {
		p := &world.Place{Node: apart("n1"), Zone: apart("a")}
		for _, zone := range hints {
			p.Hints = append(p.Hints, world.Hint{Zone: apart(zone)})
		}
		s := &world.EndpointSlice{Endpoints: []world.Endpoint{{Place: p}}}
		table.Same(s)
		return s.Endpoints[0].Place
	}
	if place() != place() || place("a", "b", "c") != place("a", "b", "c") { //nolint:staticcheck // each call makes one
		t.Error("there twice")
	}
	if other := place("a", "x", "c"); other == place("a", "b", "c") || other.Hints[1].Zone != "x" {
		t.Error("shared by endpoints that are for others")
	}
}

func TestServicesShareWhatTheyHaveBesides(t *testing.T) {
	var table Table
	extra := func(x world.Extra) *world.Extra {
		s := &world.Service{Extra: &x}
		table.Same(s)
		return s.Extra
	}
	if extra(world.Extra{Class: apart("c")}) != extra(world.Extra{Class: apart("c")}) { //nolint:staticcheck // each call makes one
		t.Error("there twice")
	}
	if x := extra(world.Extra{Class: "c", Affinity: time.Second}); x.Affinity != time.Second {
		t.Error("shared by Services that ask for something else")
	}
}

// However many objects come and go, a table remembers a bounded number of what they said.
func TestTableIsBounded(t *testing.T) {
	var table Table
	for i := range 3 * textsAtMost {
		id := fmt.Sprint("x", i)
		table.Same(&world.EndpointSlice{Endpoints: []world.Endpoint{{Place: &world.Place{Node: id}}}})
		table.Same(&world.Service{Extra: &world.Extra{Pool: id}})
		table.Same(&world.Pod{Meta: world.Meta{ID: world.ID{Namespace: id, Name: id}}, Labels: []world.KV{{Key: id, Value: id}}})
	}
	for what, n := range map[string][2]int{
		"words": {len(table.words), textsAtMost}, "names": {len(table.names), textsAtMost}, "labels": {len(table.kvs), listsAtMost},
		"places": {len(table.places), textsAtMost}, "extras": {len(table.extras), listsAtMost},
	} {
		if n[0] == 0 || n[0] > n[1] {
			t.Errorf("%d %s", n[0], what)
		}
	}
}
