// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// slicesSeen is one view of the slices of one Service, as the checker remembers it.
type slicesSeen struct {
	view, complete  bool // whether anything of it counts, and whether absence from it does
	began           time.Duration
	lists, version  uint64
	serviceAt       uint64
	present         map[string]bool
	watched, polled map[string]bool
}

// lackedTwice tells whether two complete lists a second apart lacked a slice ("" for any slice) since it was last
// there. No view may have come in between that is none: everything starts anew then.
func lackedTwice(history []slicesSeen, slice string) bool {
	last := history[len(history)-1]
	for i := len(history) - 1; i >= 0; i-- {
		m := history[i]
		if !m.view || m.present[slice] || slice == "" && len(m.present) > 0 {
			return false
		}
		if m.complete && last.complete && m.lists != last.lists && last.began-m.began >= time.Second {
			return true
		}
	}
	return false
}

// settledSince tells whether two complete lists a second apart were seen since the last view that is none, and where
// that run of views starts.
func settledSince(history []slicesSeen) (settled bool, start int) {
	for start = len(history); start > 0 && history[start-1].view; start-- {
	}
	for i, a := range history[start:] {
		for _, b := range history[start+i:] {
			settled = settled || a.complete && b.complete && a.lists != b.lists && b.began-a.began >= time.Second
		}
	}
	return settled, start
}

// The endpoints of a Service shrink only if every slice that was ever seen of it is there, was seen to go, or is missing
// from two lists a second apart; and only once two lists have shown which slices there are. The checker searches the
// whole history; a single Service is never a mass change.
func TestPropertyEndpointsShrinkOnlyWithEvidence(t *testing.T) {
	all := []string{"a", "b", "c"}
	web := world.ID{Namespace: "default", Name: "web"}
	testkit.Check(t, func(t *rapid.T) {
		guard := NewGuard(Limits{})
		var history []slicesSeen
		believed := map[string]bool{} // missing, and let go before
		everGranted := false
		now, lists, version := time.Duration(0), uint64(1), uint64(10)
		for range rapid.IntRange(1, 20).Draw(t, "views") {
			now += rapid.SampledFrom([]time.Duration{0, 400 * time.Millisecond, time.Second, 2 * time.Second}).Draw(t, "later")
			if rapid.Bool().Draw(t, "listed anew") {
				lists++
			}
			version += rapid.Uint64Range(0, 1).Draw(t, "newer")
			m := slicesSeen{view: true, complete: rapid.IntRange(0, 7).Draw(t, "complete") < 7, lists: lists, version: version,
				present: map[string]bool{}, watched: map[string]bool{}, polled: map[string]bool{}}
			age := rapid.SampledFrom([]time.Duration{0, 0, 600 * time.Millisecond}).Draw(t, "age of the list")
			m.began = now - age
			m.serviceAt = version - 1 + rapid.Uint64Range(0, 2).Draw(t, "service ahead")
			w := world.World{Cluster: "c1"}
			if rapid.IntRange(0, 15).Draw(t, "foreign") == 15 {
				w.Cluster, m.view = "c2", false
			}
			for _, slice := range all {
				switch rapid.SampledFrom([]string{"there", "there", "missing", "missing", "watched", "polled"}).Draw(t, slice) {
				case "there":
					m.present[slice] = true
					w.EndpointSlices = append(w.EndpointSlices, &world.EndpointSlice{Meta: world.Meta{ID: serviceID(slice), UID: "u-" + slice}, ServiceName: web.Name})
				case "watched":
					m.watched[slice] = true
					w.Deleted = append(w.Deleted, world.Deletion{Ref: world.Ref{Kind: world.KindEndpointSlice, ID: serviceID(slice), UID: "u-" + slice}, Service: web, How: world.ByWatch})
				case "polled":
					m.polled[slice] = true
					w.Deleted = append(w.Deleted, world.Deletion{Ref: world.Ref{Kind: world.KindEndpointSlice, ID: serviceID(slice), UID: "u-" + slice}, Service: web, How: world.ByScan})
				}
			}
			for _, kind := range world.Kinds() {
				w.Kinds = append(w.Kinds, world.KindView{Kind: kind, Listed: true, Complete: m.complete, Lists: lists, Version: version, ListAge: age, ListedAge: age, Age: age})
			}
			w.Services = []*world.Service{{Meta: world.Meta{ID: web, UID: "u", Version: m.serviceAt}}}
			w.Sort()
			history = append(history, m)
			v := guard.Judge(now, &w, &Known{Cluster: "c1", Objects: []KnownObject{{world.KindService, web, "u"}, {Kind: world.KindEndpointSlice, ID: web}}})

			settled, start := settledSince(history)
			if start == len(history) {
				believed, everGranted = map[string]bool{}, false
			}
			for slice := range m.present {
				delete(believed, slice)
				everGranted = false
			}
			may := v.MayRemove(world.KindEndpointSlice, web)
			if !may {
				continue
			}
			told := fmt.Sprintf("\n%+v", history[start:])
			switch {
			case !m.view:
				t.Fatalf("shrinks on no view: %s", told)
			case !settled:
				t.Fatalf("shrinks before two lists told which slices there are: %s", told)
			case len(m.present) == 0 && m.version < m.serviceAt:
				t.Fatalf("shrinks though the slices lag behind the Service: %s", told)
			}
			for _, slice := range all {
				if m.present[slice] || believed[slice] {
					continue
				}
				seen, went := false, false
				for _, h := range history[start:] {
					if h.present[slice] {
						seen, went = true, false
					}
					went = went || h.watched[slice]
				}
				if seen && !went && !m.polled[slice] && !lackedTwice(history, slice) {
					t.Fatalf("shrinks by slice %s, which is just missing: %s", slice, told)
				}
			}
			if everSeen := anySeen(history[start:]); len(m.present) == 0 && !everSeen && !everGranted && !lackedTwice(history, "") {
				t.Fatalf("shrinks to nothing on one list: %s", told)
			}
			everGranted = true
			for _, slice := range all {
				believed[slice] = !m.present[slice]
			}
		}
	})
}

func anySeen(history []slicesSeen) bool {
	for _, m := range history {
		if len(m.present) > 0 {
			return true
		}
	}
	return false
}

// Of slices that come, are made anew and are seen to go, those are missed that are there no more and were not seen to go
// in their newest life.
func TestPropertySlicesAreKnownByTheirNewestLife(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		memory := newSliceMemory()
		service := world.ID{Namespace: "default", Name: "web"}
		known := map[string]string{} // name to UID
		for range 8 {
			w := &world.World{}
			for _, name := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, name) {
					uid := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "uid")
					w.EndpointSlices = append(w.EndpointSlices, &world.EndpointSlice{
						Meta: world.Meta{ID: world.ID{Namespace: "default", Name: name}, UID: uid}, ServiceName: service.Name})
					known[name] = uid
					continue
				}
				uid := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "gone")
				w.Deleted = append(w.Deleted, world.Deletion{How: world.ByWatch, Service: service,
					Ref: world.Ref{Kind: world.KindEndpointSlice, ID: world.ID{Namespace: "default", Name: name}, UID: uid}})
				if uid == "" || known[name] == uid {
					delete(known, name)
				}
			}
			j := &judgement{Guard: &Guard{slices: memory}, w: w}
			j.rememberSlices()
			memory = j.slices
			got := map[string]string{}
			for _, s := range memory.known(service) {
				got[s.ID.Name] = s.UID
			}
			if !maps.Equal(got, known) {
				t.Fatalf("known are %v, want %v", got, known)
			}
		}
	})
}

// known are the slices that a Service is known to have had.
func (m *sliceMemory) known(service world.ID) []*world.EndpointSlice {
	out := slices.Clone((&world.World{EndpointSlices: m.there}).SlicesOf(service))
	if l := m.lacking[service]; l != nil {
		out = append(out, l.missing...)
	}
	return out
}

// plainMemory knows of each Service by name all slices that were seen of it, by their UIDs.
type plainMemory map[string]map[string]string

func (m plainMemory) of(service string) map[string]string {
	if m[service] == nil {
		m[service] = map[string]string{}
	}
	return m[service]
}

func uidsOf(list []*world.EndpointSlice) map[string]string {
	out := map[string]string{}
	for _, s := range list {
		out[s.Name] = s.UID
	}
	return out
}

// What a guard misses is what one would that writes down each slice of each view: as slices come and go, are made anew and change from one
// Service to another, as they are let go, and as Services leave the record.
func TestPropertyMissingSlicesAreThoseWrittenDownBefore(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		services := []string{"a", "b", "c"}
		guard, plain := NewGuard(Limits{}), plainMemory{}
		in := func(name string) world.ID { return world.ID{Namespace: "default", Name: name} }
		last := map[string]*world.EndpointSlice{}
		for range 12 {
			w := &world.World{}
			for _, name := range []string{"p", "q", "r", "s", "t"} {
				slice := &world.EndpointSlice{Meta: world.Meta{ID: in(name), UID: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "uid")},
					ServiceName: rapid.SampledFrom(services).Draw(t, "of")}
				switch rapid.SampledFrom([]string{"stays", "stays", "anew", "missing", "deleted"}).Draw(t, name) {
				case "stays":
					if last[name] != nil {
						slice = last[name]
					}
					fallthrough
				case "anew":
					w.EndpointSlices, last[name] = append(w.EndpointSlices, slice), slice
				case "deleted":
					w.Deleted = append(w.Deleted, world.Deletion{How: world.ByWatch, Service: slice.Service(), Ref: slice.Ref(world.KindEndpointSlice)})
				}
			}
			w.Sort()
			j := &judgement{Guard: guard, w: w}
			j.rememberSlices()
			for _, s := range w.EndpointSlices {
				plain.of(s.ServiceName)[s.Name] = s.UID
			}
			for _, d := range w.Deleted {
				if plain[d.Service.Name][d.Name] == d.UID {
					delete(plain[d.Service.Name], d.Name)
				}
			}
			for _, name := range services {
				there := uidsOf(w.SlicesOf(in(name)))
				lacks := guard.slices.lacking[in(name)]
				if got, want := lacks != nil || len(there) > 0, plain[name] != nil; got != want {
					t.Fatalf("Service %s is known: %t, want %t", name, got, want)
				}
				if got, want := uidsOf(guard.slices.known(in(name))), plain[name]; !maps.Equal(got, want) {
					t.Fatalf("known of Service %s are %v, want %v", name, got, want)
				}
				recorded := rapid.IntRange(0, 3).Draw(t, "recorded") < 3
				letGo := recorded && rapid.IntRange(0, 3).Draw(t, "let go") == 3
				if lacks != nil && recorded {
					lacks.round = guard.slices.round
				}
				if letGo {
					guard.slices.settle(j, in(name))
				}
				if !recorded || letGo {
					plain[name] = there
				}
				if !recorded && len(there) == 0 {
					delete(plain, name)
				}
			}
			guard.slices.prune()
		}
	})
}
