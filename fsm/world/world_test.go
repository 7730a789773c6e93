// SPDX-License-Identifier: Apache-2.0

package world

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// filled makes a value of type t in which every slice has two entries and every number and text is set, so that
// a field that Clone or Sort forgets shows up when somebody adds one.
func filled(t reflect.Type, seed *int) reflect.Value {
	v := reflect.New(t).Elem()
	*seed++
	switch t {
	case reflect.TypeFor[netip.Addr]():
		v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{192, 0, 2, byte(*seed)})))
		return v
	case reflect.TypeFor[netip.Prefix]():
		v.Set(reflect.ValueOf(netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(*seed)}), 32)))
		return v
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(filled(t.Field(i).Type, seed))
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem(), seed))
	case reflect.Slice:
		v = reflect.Append(v, filled(t.Elem(), seed), filled(t.Elem(), seed))
	case reflect.String:
		v.SetString(fmt.Sprintf("s%03d", *seed))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*seed))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*seed%200) + 1)
	default:
		panic("world holds a value that is not plain: " + t.String())
	}
	return v
}

func filledWorld() World {
	seed := 0
	return filled(reflect.TypeFor[World](), &seed).Interface().(World)
}

func TestCloneSharesNoMemory(t *testing.T) {
	w := filledWorld()
	c := w.Clone()
	if !reflect.DeepEqual(w, c) {
		t.Fatal("a clone differs from its original")
	}
	var walk func(path string, a, b reflect.Value)
	walk = func(path string, a, b reflect.Value) {
		switch {
		case a.Type() == reflect.TypeFor[netip.Addr]() || a.Type() == reflect.TypeFor[netip.Prefix]():
		case a.Kind() == reflect.Pointer:
			if a.Pointer() == b.Pointer() {
				t.Errorf("%s is shared", path)
			}
			walk(path, a.Elem(), b.Elem())
		case a.Kind() == reflect.Slice:
			if a.Pointer() == b.Pointer() {
				t.Errorf("%s is shared", path)
			}
			for i := range a.Len() {
				walk(fmt.Sprintf("%s[%d]", path, i), a.Index(i), b.Index(i))
			}
		case a.Kind() == reflect.Struct:
			for i := range a.NumField() {
				walk(path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
			}
		}
	}
	walk("World", reflect.ValueOf(w), reflect.ValueOf(c))
}

// A set in another order is the same set: whatever order a source happens to read things in, Sort ends in one form.
func TestSortForgetsTheOrderOfReading(t *testing.T) {
	ordered := map[string]bool{"Service.ClusterIPs": true, "Node.Addresses": true, "BackendGroup.LoadBalancers": true, "Choosing.Weights": true, "Pod.Ports": true, "Node.Proxies": true}
	var shuffle func(r *rand.Rand, name string, v reflect.Value)
	shuffle = func(r *rand.Rand, name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			shuffle(r, "", v.Elem())
		case reflect.Slice:
			for i := range v.Len() {
				shuffle(r, "", v.Index(i))
			}
			if !ordered[name] {
				r.Shuffle(v.Len(), reflect.Swapper(v.Interface()))
			}
		case reflect.Struct:
			if v.Type().PkgPath() != reflect.TypeFor[World]().PkgPath() {
				return
			}
			for i := range v.NumField() {
				shuffle(r, v.Type().Name()+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	}
	testkit.Check(t, func(t *rapid.T) {
		want := filledWorld()
		want.Sort()
		got := want.Clone()
		shuffle(rand.New(rand.NewSource(rapid.Int64().Draw(t, "order"))), "", reflect.ValueOf(&got).Elem())
		got.Sort()
		if !got.Equal(&want) {
			t.Fatalf("sorted twice differently:\n%+v\n%+v", got, want)
		}
	})
}

func TestEqualLeavesOutWhenItWasSaid(t *testing.T) {
	a := filledWorld()
	b := a.Clone()
	b.Age, b.Kinds[0].Age, b.Kinds[0].ListAge, b.Kinds[0].ListedAge, b.Kinds[0].Lists = 1, 2, 3, 5, 4
	if !a.Equal(&b) {
		t.Error("age and count of lists make a difference")
	}
	b.Kinds[0].Complete = !b.Kinds[0].Complete
	if a.Equal(&b) {
		t.Error("completeness makes no difference")
	}
	if c := a.Clone(); a.Kinds[0].Lists == 0 || !a.Equal(&c) {
		t.Error("Equal changed what it compared")
	}
}

func TestSecretIsNeverShown(t *testing.T) {
	p := Peer{Password: "tell-nobody"}
	js, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(p), fmt.Sprintf("%+v", p), fmt.Sprintf("%#v", p), string(js)} {
		if strings.Contains(shown, "tell-nobody") {
			t.Errorf("the password shows in %s", shown)
		}
	}
	if p.Password.Reveal() != "tell-nobody" {
		t.Error("the password is lost")
	}
}

func TestProblemIsOneLineWithFileFieldReasonAndRemedy(t *testing.T) {
	p := Problem{File: "web.yaml", Line: 7, Object: Ref{Kind: KindService, ID: ID{"default", "web"}},
		Field: "spec.externalIPs[0]", Why: `"203.0.113.300" is no IP address`, Remedy: "write it like 203.0.113.10"}
	want := `web.yaml:7: Service default/web: spec.externalIPs[0]: "203.0.113.300" is no IP address (write it like 203.0.113.10)`
	if got := p.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSlicesOfFindsExactlyTheServicesOwn(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		var w World
		names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 12).Draw(t, "services of slices")
		for i, n := range names {
			w.EndpointSlices = append(w.EndpointSlices, &EndpointSlice{
				Meta: Meta{ID: ID{"default", fmt.Sprintf("s%d", i)}}, ServiceName: n})
		}
		w.Sort()
		for _, service := range []string{"", "a", "b", "c", "d"} {
			want := 0
			for _, n := range names {
				if n == service {
					want++
				}
			}
			got := w.SlicesOf(ID{"default", service})
			if len(got) != want || slices.ContainsFunc(got, func(s *EndpointSlice) bool { return s.ServiceName != service }) {
				t.Fatalf("slices of %q: %v, want %d", service, got, want)
			}
		}
	})
}

func TestCommunityResolvesNumbersNamesAndAliases(t *testing.T) {
	w := World{Communities: []*Community{{Aliases: []KV{{"backup", "65000:100"}, {"hide", "no-export"}}}}}
	for text, want := range map[string]uint32{"65000:1": 65000<<16 | 1, "no-export": 0xFFFFFF01, "backup": 65000<<16 | 100, "hide": 0xFFFFFF01} {
		if got, err := w.Community(text); err != nil || got != want {
			t.Errorf("%s: %x, %v; want %x", text, got, err, want)
		}
	}
	for _, text := range []string{"", "primary", "65536:1", "1:65536", "1:-1", "large:1:2:3", "1:2:3"} {
		if v, err := w.Community(text); err == nil {
			t.Errorf("%q is taken for %x", text, v)
		}
	}
}
