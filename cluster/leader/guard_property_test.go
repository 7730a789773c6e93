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

// moment is one view, as the checker remembers it: the whole history is kept and searched, which is slow and plain.
type moment struct {
	now                     time.Duration
	cluster                 string
	whole, listed, complete bool
	hasDefault              bool
	nodes                   int
	version                 uint64
	lists                   uint64
	listAge, listedAge, age time.Duration
	present, deleting       map[string]bool
	unusable                map[string]bool
	watched, scanned        map[string]bool // by name: seen to go
	older                   bool            // than what was seen or acted on, or after a rewind that nobody accepted
	known, released         map[string]bool
}

// isView says whether S12 lets anything of the moment count.
func (m *moment) isView() bool {
	return m.cluster == "c1" && m.listed && !m.older && (!m.whole || m.hasDefault && m.nodes > 0)
}

// reach is what the checker knows of versions that ran back: the newest that was seen, since when views are older, and that they were so
// for longer than 40 s by complete lists.
type reach struct {
	newest uint64
	since  time.Duration // -1 while they are not
	told   bool
}

// see takes in a moment, and says whether it may not count.
func (v *reach) see(m *moment, accepted bool) (older bool) {
	if m.cluster != "c1" || m.listed && m.whole && !(m.hasDefault && m.nodes > 0) {
		v.since = -1
		return false // no view anyway
	}
	if accepted {
		*v = reach{since: -1}
		return false
	}
	switch {
	case m.version < v.newest:
		if v.since < 0 {
			v.since = m.now
		}
		v.told = v.told || m.complete && m.now-m.listAge-v.since > 40*time.Second
	case !v.told:
		v.since, v.newest = -1, m.version
	}
	return v.since >= 0 || v.told
}

// lacks says whether the moment's list is evidence that an object is absent.
func (m *moment) lacks(name string) bool {
	return m.isView() && m.complete && m.age <= 2*time.Minute && !m.present[name] && !m.unusable[name]
}

// world turns the moment into what the guard sees.
func (m *moment) world() world.World {
	w := world.World{Source: "test", Cluster: m.cluster, WholeCluster: m.whole, Complete: m.complete}
	for _, k := range world.Kinds() {
		v := world.KindView{Kind: k, Listed: m.listed, Complete: true, Version: m.version, Lists: m.lists, ListAge: m.listAge, ListedAge: m.listedAge, Age: m.age}
		if k == world.KindService {
			v.Complete = m.complete
		}
		w.Kinds = append(w.Kinds, v)
	}
	if m.hasDefault {
		w.Services = append(w.Services, &world.Service{Meta: world.Meta{ID: serviceID("kubernetes"), UID: "k"}})
	}
	for i := range m.nodes {
		w.Nodes = append(w.Nodes, &world.Node{Meta: world.Meta{ID: world.ID{Name: fmt.Sprintf("n%d", i)}}})
	}
	for name := range m.present {
		w.Services = append(w.Services, &world.Service{Meta: world.Meta{ID: serviceID(name), UID: "u-" + name, Deleting: m.deleting[name]}})
	}
	for name := range m.unusable {
		w.Unusable = append(w.Unusable, world.Ref{Kind: world.KindService, ID: serviceID(name)})
	}
	for how, names := range map[world.How]map[string]bool{world.ByWatch: m.watched, world.ByScan: m.scanned} {
		for name := range names {
			w.Deleted = append(w.Deleted, world.Deletion{Ref: world.Ref{Kind: world.KindService, ID: serviceID(name), UID: "u-" + name}, How: how})
		}
	}
	w.Sort()
	return w
}

// String tells the moment in one line of a failure.
func (m *moment) String() string {
	return fmt.Sprintf("%v list %d age %v view %t complete %t: recorded %v, lacks %v, deleting %v, watched %v, scanned %v, unusable %v, released %v", m.now, m.lists,
		m.listAge, m.isView(), m.complete, len(m.known), lacking(m), listed(m.deleting), listed(m.watched), listed(m.scanned), listed(m.unusable), listed(m.released))
}

func lacking(m *moment) []string {
	var out []string
	for name := range m.known {
		if !m.present[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func tell(history []*moment) string {
	out := ""
	for _, m := range history {
		out += "\n" + m.String()
	}
	return out
}

func listed(of map[string]bool) []string { return slices.Sorted(maps.Keys(of)) }

// confirmed searches the history for two complete lists, a second apart, that lack an object, with nothing in between
// that showed it or that was no view.
func confirmed(history []*moment, name string) bool {
	last := history[len(history)-1]
	if !last.lacks(name) {
		return false
	}
	for i := len(history) - 2; i >= 0; i-- {
		m := history[i]
		switch {
		case !m.listed && m.cluster == "c1" && !m.older:
			continue // nothing was read: that neither shows nor confirms anything
		case !m.isView() || m.present[name] || m.unusable[name] || !m.known[name]:
			return false
		}
		if m.lacks(name) && m.lists != last.lists && (last.now-last.listAge)-(m.now-m.listedAge) >= time.Second {
			return true
		}
	}
	return false
}

// massChange counts what is absent now, what was removed for absence within ten minutes, and what was seen to go within five seconds, operators' words
// apart.
func massChange(history []*moment, byAbsence, byScan, bySight map[string]time.Duration) (few, left bool) {
	last := history[len(history)-1]
	absent, size, remaining := map[string]bool{}, map[string]bool{}, 0
	recent := func(at time.Duration) bool { return last.now-at <= 10*time.Minute }
	together := func(at time.Duration) bool { return last.now-at <= 5*time.Second }
	for name := range last.known {
		if last.released[name] {
			continue
		}
		size[name] = true
		gone := !last.present[name] && !last.unusable[name]
		switch {
		case gone && !last.watched[name]:
			absent[name] = true
		case !gone && !last.deleting[name]:
			remaining++
		}
	}
	for name, at := range byAbsence {
		if recent(at) && !last.released[name] {
			absent[name], size[name] = true, true
		}
	}
	for name, at := range byScan {
		if together(at) && !last.released[name] {
			absent[name], size[name] = true, true
		}
	}
	for name, at := range bySight {
		if together(at) && !last.released[name] {
			size[name] = true
		}
	}
	return len(absent) <= 10 || 2*len(absent) <= len(size), remaining > 0 || len(size) <= 10
}

// Whatever a source shows (nothing, a part of the truth that claims to be all, another cluster, the past), an object
// leaves the record only if it was seen to go, or two lists a second apart agree and few are gone, or an operator
// released it (S12). The checker shares no code and no state with the guard.
func TestPropertyNothingIsRemovedWithoutEvidence(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		total := rapid.SampledFrom([]int{3, 11, 14, 25}).Draw(t, "services")
		var all []string
		for i := range total {
			all = append(all, fmt.Sprintf("s%02d", i))
		}
		record := map[string]bool{}
		for _, name := range all {
			record[name] = rapid.IntRange(0, 9).Draw(t, "recorded "+name) < 9
		}
		deleteFalse(record)
		guard, acted := NewGuard(Limits{Burst: 1000}), uint64(0)
		var holds []KnownHold
		var history []*moment
		byAbsence, byScan, bySight := map[string]time.Duration{}, map[string]time.Duration{}, map[string]time.Duration{}
		now, lists, version := time.Duration(0), uint64(1), uint64(100)
		seen, accepted := reach{since: -1}, false
		var last *moment
		for range rapid.IntRange(1, 25).Draw(t, "views") {
			now += rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond, time.Second, 3 * time.Second, 6 * time.Minute}).Draw(t, "later")
			if rapid.Bool().Draw(t, "listed anew") {
				lists++
			}
			version += rapid.Uint64Range(0, 2).Draw(t, "newer")
			m := drawMoment(t, all, last, now, lists, version)
			accepted = accepted || seen.told && rapid.Bool().Draw(t, "rewind accepted")
			m.older = seen.see(m, accepted)
			last = m
			if len(holds) > 0 && rapid.IntRange(0, 4).Draw(t, "operator") == 4 {
				holds[rapid.IntRange(0, len(holds)-1).Draw(t, "hold")].Released = true
			}
			m.known, m.released = clone(record), map[string]bool{}
			known := Known{Cluster: "c1", Versions: map[world.Kind]uint64{world.KindService: acted}, Holds: holds, RewindAccepted: accepted}
			for _, name := range all {
				if record[name] {
					known.Objects = append(known.Objects, KnownObject{world.KindService, serviceID(name), "u-" + name})
				}
			}
			for _, h := range holds {
				for _, s := range h.Subjects {
					if h.Released {
						m.released[s[len("default/"):len("default/")+3]] = true
					}
				}
			}
			history = append(history, m)
			w := m.world()
			v := guard.Judge(now, &w, &known)

			few, left := massChange(history, byAbsence, byScan, bySight)
			for _, g := range v.Gone {
				name := g.ID.Name
				missing := !m.present[name] && !m.unusable[name]
				switch {
				case !m.isView():
					t.Fatalf("%s removed for something that is no view: %s", name, g.Evidence)
				case m.present[name] && m.deleting[name], missing && m.watched[name]:
					bySight[name] = now
				case !missing:
					t.Fatalf("%s removed while it is there", name)
				case !m.scanned[name] && !confirmed(history, name):
					t.Fatalf("%s removed without a second list: %s", name, g.Evidence)
				case m.released[name]:
				default:
					by := byAbsence
					if m.scanned[name] {
						by = byScan
					}
					at, decided := max(byAbsence[name], byScan[name]), byAbsence[name]+byScan[name] > 0
					if !few && !(decided && now-at <= 10*time.Minute) {
						t.Fatalf("%s removed in a mass change: %v", name, tell(history))
					}
					if !left && !(decided && now-at <= 10*time.Minute) {
						t.Fatalf("%s removed with the last of its kind: %v", name, tell(history))
					}
					by[name] = now
				}
				delete(record, name)
			}
			for _, h := range v.Hold {
				holds = append(holds, KnownHold{ID: h.ID, Kind: h.Kind, Subjects: h.Subjects})
			}
			holds = slices.DeleteFunc(holds, func(h KnownHold) bool { return slices.Contains(v.Lift, h.ID) })
			if v.Act != m.isView() {
				t.Fatalf("acted on: %t, a view: %t (%s)", v.Act, m.isView(), v.Why)
			}
			if v.Act {
				acted, accepted, seen.newest = m.version, false, m.version
				for name := range m.present {
					if !m.deleting[name] {
						record[name] = true
					}
				}
			}
		}
	})
}

// drawMoment draws a view, like the one before more often than not, so that absences can be confirmed.
func drawMoment(t *rapid.T, all []string, last *moment, now time.Duration, lists, version uint64) *moment {
	rarely := func(what string) bool { return rapid.IntRange(0, 11).Draw(t, what) == 11 }
	m := &moment{now: now, cluster: "c1", whole: true, listed: true, complete: true, hasDefault: true, nodes: 2, version: version, lists: lists,
		present: map[string]bool{}, deleting: map[string]bool{}, unusable: map[string]bool{}, watched: map[string]bool{}, scanned: map[string]bool{}}
	if rarely("foreign") {
		m.cluster = "c2"
	}
	m.listed = !rarely("not listed")
	m.complete = !rarely("incomplete")
	m.hasDefault = !rarely("no default/kubernetes")
	m.whole = !rarely("no whole cluster")
	if rarely("no nodes") {
		m.nodes = 0
	}
	if rarely("older") {
		m.version -= 50
	}
	m.listAge = rapid.SampledFrom([]time.Duration{0, 0, 0, 700 * time.Millisecond}).Draw(t, "age of the list")
	m.listedAge = rapid.SampledFrom([]time.Duration{0, m.listAge / 2, m.listAge}).Draw(t, "age of its answer")
	m.age = m.listAge
	if rarely("stale") {
		m.age = 3 * time.Minute
	}
	mood := rapid.SampledFrom([]string{"as before", "as before", "few missing", "half missing", "empty", "all there"}).Draw(t, "mood")
	for _, name := range all {
		there := true
		switch mood {
		case "as before":
			there = last == nil || last.present[name]
		case "few missing":
			there = rapid.IntRange(0, 5).Draw(t, name) < 5
		case "half missing":
			there = rapid.Bool().Draw(t, name)
		case "empty":
			there = false
		}
		switch fate := rapid.IntRange(0, 30).Draw(t, "fate of "+name); {
		case there:
			m.present[name], m.deleting[name] = true, fate == 30
		case fate == 30:
			m.watched[name] = true
		case fate == 29:
			m.scanned[name] = true
		case fate == 28:
			m.unusable[name] = true
		}
		if last != nil && mood == "as before" && !there {
			m.watched[name] = m.watched[name] || last.watched[name]
			m.scanned[name] = m.scanned[name] || last.scanned[name]
		}
	}
	for _, names := range []map[string]bool{m.deleting, m.watched, m.scanned} {
		deleteFalse(names)
	}
	return m
}

func deleteFalse(names map[string]bool) {
	for name, yes := range names {
		if !yes {
			delete(names, name)
		}
	}
}

func clone(names map[string]bool) map[string]bool {
	out := map[string]bool{}
	for name := range names {
		out[name] = true
	}
	return out
}

// A guard that never lets go would be safe and useless: what is gone for good, in numbers that are no mass change, is
// removed by the time of a third good list, whatever came before; and a mass change is put before an operator.
func TestPropertyRealRemovalsHappen(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 40).Draw(t, "services")
		missing := rapid.IntRange(0, total).Draw(t, "missing")
		guard := NewGuard(Limits{})
		m := &moment{cluster: "c1", whole: true, listed: true, complete: true, hasDefault: true, nodes: 1, version: 7, present: map[string]bool{}}
		var objects []KnownObject
		for i := range total {
			name := fmt.Sprintf("s%02d", i)
			objects = append(objects, KnownObject{world.KindService, serviceID(name), "u-" + name})
			if i >= missing {
				m.present[name] = true
			}
		}
		var v Verdict
		var trouble []string
		for round := range 5 {
			m.lists, m.now = m.lists+1, time.Duration(round)*1100*time.Millisecond
			bad := *m
			if round < 2 {
				kind := rapid.SampledFrom([]string{"none", "foreign", "older", "incomplete"}).Draw(t, "trouble")
				trouble = append(trouble, kind)
				switch kind {
				case "foreign":
					bad.cluster = "c2"
				case "older":
					bad.version = 3
				case "incomplete":
					bad.complete = false
				}
			}
			w := bad.world()
			v = guard.Judge(m.now, &w, &Known{Cluster: "c1", Versions: map[world.Kind]uint64{world.KindService: 7}, Objects: objects})
		}
		mass := missing > 10 && (2*missing > total)
		switch {
		case mass && (len(v.Gone) > 0 || len(v.Hold) != 1 || len(v.Hold[0].Subjects) != missing):
			t.Fatalf("%d of %d missing: gone %d, holds %v (after %v)", missing, total, len(v.Gone), v.Hold, trouble)
		case !mass && len(v.Gone) != missing:
			t.Fatalf("%d of %d missing: gone %d, waiting %v (after %v)", missing, total, len(v.Gone), v.Waiting, trouble)
		}
	})
}

// What a person deletes one after the other, while a source is read and shows each of them go, is let go at once, however many they are and whatever is
// left; what goes together, or was not seen to go, is held.
func TestPropertyWhatIsDeletedOneByOneGoesAtOnce(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 40).Draw(t, "services")
		whole := rapid.Bool().Draw(t, "all there at first")
		how := rapid.SampledFrom([]string{"scan", "watch"}).Draw(t, "seen by")
		m := &moment{cluster: "c1", whole: true, listed: true, complete: true, hasDefault: true, nodes: 1, version: 7, now: time.Minute,
			present: map[string]bool{}, watched: map[string]bool{}, scanned: map[string]bool{}}
		guard, record := NewGuard(Limits{}), map[string]bool{}
		var holds []KnownHold
		judge := func() Verdict {
			m.lists++
			m.now += time.Second
			known := Known{Cluster: "c1", Versions: map[world.Kind]uint64{world.KindService: 7}, Holds: holds}
			for _, name := range listed(record) {
				known.Objects = append(known.Objects, KnownObject{world.KindService, serviceID(name), "u-" + name})
			}
			w := m.world()
			v := guard.Judge(m.now, &w, &known)
			for _, g := range v.Gone {
				delete(record, g.ID.Name)
			}
			return v
		}
		add := func(name string) { m.present[name], record[name] = true, true }
		name := func(i int) string { return fmt.Sprintf("s%02d", i) }
		for i := range total {
			if whole {
				add(name(i))
			}
		}
		for i := range total {
			if !whole {
				add(name(i))
				judge()
			}
			delete(m.present, name(i))
			if how == "scan" {
				m.scanned[name(i)] = true
			} else {
				m.watched[name(i)] = true
			}
			if v := judge(); record[name(i)] || len(v.Hold) > 0 {
				t.Fatalf("%s, the %d. of %d that were deleted, is held: %v %v", name(i), i+1, total, v.Hold, v.Waiting)
			}
		}
	})
}
