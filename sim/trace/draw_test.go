// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"net/netip"
	"reflect"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/sim/event"
)

// zeros is an empty event of each kind.
func zeros() []event.Event {
	var all []event.Event
	for _, k := range kinds[1:] {
		all = append(all, k.read(&coder{mode: unpack}))
	}
	return all
}

var (
	addrType   = reflect.TypeFor[netip.Addr]()
	prefixType = reflect.TypeFor[netip.Prefix]()
	wordGen    = rapid.SampledFrom([]string{"", "m1", "m2", "n1", "switch-a", "raft", "data", "a=1 b=2", "ümläut\x00\"<&"})
	addrGen    = rapid.Map(rapid.SampledFrom([]string{"", "192.0.2.1", "192.0.2.2", "2001:db8::1", "fe80::1%eth0", "::ffff:192.0.2.1"}),
		func(s string) netip.Addr { a, _ := netip.ParseAddr(s); return a })
	prefixGen = rapid.Map(rapid.SampledFrom([]string{"", "192.0.2.1/32", "192.0.2.0/24", "2001:db8::/32", "0.0.0.0/0"}),
		func(s string) netip.Prefix { p, _ := netip.ParsePrefix(s); return p })
)

// fill draws a value for whatever an event is made of. Lists are nil or have items: a trace cannot tell nil from empty.
func fill(t *rapid.T, v reflect.Value, name string) {
	switch {
	case v.Type() == addrType:
		v.Set(reflect.ValueOf(addrGen.Draw(t, name)))
		return
	case v.Type() == prefixType:
		v.Set(reflect.ValueOf(prefixGen.Draw(t, name)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(wordGen.Draw(t, name))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, name))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, name))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, name) >> (64 - v.Type().Bits()))
	case reflect.Slice:
		if n := rapid.IntRange(0, 3).Draw(t, name); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		for i := range v.Len() {
			fill(t, v.Index(i), name)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Field(i).Name)
		}
	default:
		t.Fatalf("events of %s: teach this test to draw it", v.Type())
	}
}

// leaves are the places in a value that can differ by themselves, each as a copy of the value and that place in it.
func leaves(v reflect.Value, visit func(place reflect.Value)) {
	switch {
	case v.Type() == addrType || v.Type() == prefixType:
		visit(v)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			leaves(v.Field(i), visit)
		}
	case v.Kind() == reflect.Slice:
		visit(v) // its length
		for i := range v.Len() {
			leaves(v.Index(i), visit)
		}
	default:
		visit(v)
	}
}

// copied is a copy of an event that shares nothing with it.
func copied(e event.Event) reflect.Value {
	to := reflect.New(reflect.TypeOf(e)).Elem()
	to.Set(reflect.ValueOf(e))
	leaves(to, func(place reflect.Value) {
		if place.Kind() == reflect.Slice && place.Len() > 0 {
			list := reflect.MakeSlice(place.Type(), place.Len(), place.Len())
			reflect.Copy(list, place)
			place.Set(list)
		}
	})
	return to
}

func drawEvent(t *rapid.T) event.Event {
	v := reflect.New(reflect.TypeOf(rapid.SampledFrom(zeros()).Draw(t, "kind"))).Elem()
	fill(t, v, "event")
	return v.Interface().(event.Event)
}

func drawRun(t *rapid.T, most int) []event.Stamped {
	var run []event.Stamped
	var at time.Duration
	for i := range rapid.IntRange(0, most).Draw(t, "events") {
		at += time.Duration(rapid.IntRange(0, 3).Draw(t, "later")) * time.Millisecond
		run = append(run, event.Stamped{At: at, Number: uint64(i) + 1, Event: drawEvent(t)})
	}
	return run
}

func heard(run []event.Stamped, o Options) *Recorder {
	r := New(o)
	for _, e := range run {
		r.Hear(e)
	}
	return r
}
