// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// A guard that is not asked again about what it saw before says what one says that is asked each time, whatever was shown and
// however much time passed.
func TestPropertyGuardsNeedNotBeAskedAboutTheSame(t *testing.T) {
	spared := 0
	testkit.Check(t, func(t *rapid.T) {
		g, source, clock := newLiveGroup(t), &liar{}, &hand{now: time.Hour}
		l, err := New(Config{
			Sources: []NamedSource{{"lying", source}}, Record: g.state, Group: g, Clock: clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		leader, asked, sparing := newPlanning(l), newSentry(l, PartServices), newSentry(l, PartServices)
		version, lists := uint64(100), uint64(1)
		source.view = truth(version, lists)
		for range rapid.IntRange(4, 30).Draw(t, "looks") {
			age := time.Duration(0)
			switch kind := one(t, "view", "same", "same", "same", "same", "version", "true", "partial", "foreign", "once", "mass", "old", "hold"); kind {
			case "same":
				lists += uint64(rapid.IntRange(0, 1).Draw(t, "listed"))
			case "version":
				version++
			case "old":
				age = 5 * time.Minute
			case "hold":
				g.commit(&fsm.PutHold{ID: "h", Of: string(world.KindService), Subjects: []string{"shop/nobody uid=u"}, Why: "test"})
			default:
				version, lists = version+1, lists+1
				source.view = truth(version, lists)
				if kind != "true" {
					lie(t, &source.view, kind)
				}
			}
			source.view.Kinds = slices.Clone(source.view.Kinds)
			for i := range source.view.Kinds {
				k := &source.view.Kinds[i]
				k.Version, k.Lists, k.Age = version, lists, age
			}
			record := g.state.Read()
			asked.judged = judged{}
			if sparing.judged.verdicts != nil && sparing.still(sparing.worlds(), record) {
				spared++
			}
			_, want := asked.judge(clock.now, record)
			_, got := sparing.judge(clock.now, record)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("verdict\n%+v\nof one that is asked each time\n%+v", got, want)
			}
			leader.news.Add(1)
			for range rapid.IntRange(0, 3).Draw(t, "plans") {
				leader.step(t.Context())
			}
			clock.now += time.Duration(rapid.SampledFrom([]int{300, 1100, 20_000, 300_000, 700_000}).Draw(t, "pause")) * time.Millisecond
		}
	})
	if spared == 0 {
		t.Error("no guard was ever spared")
	}
}

// While nothing changes, what the newest plan came to stands, and everything is planned anew now and then all the same; and at once
// when anything changes that plans are made from.
func TestPlanOfTheSameStands(t *testing.T) {
	w := newWatchedGroup(t)
	next := func() (repeated bool) {
		t.Helper()
		w.clock.now = max(w.clock.now+w.c.Timing.Replan, w.lane.due, w.notBefore)
		stands := w.idle.upto
		for i := range w.source.view.Kinds {
			w.source.view.Kinds[i].Lists++
		}
		if w.step(t.Context()) {
			t.Fatal("nothing was planned")
		}
		return stands != 0 && w.idle.upto == stands
	}
	settle := func() {
		t.Helper()
		for range 5 {
			if next() {
				return
			}
		}
		t.Fatal("plans do not come to stand")
	}
	settle()
	var waits idle
	if waits.keep(w.idle.in, false, &w.idle.out, w.clock.now); waits.upto != 0 {
		t.Error("a plan stands for others although a guard waits for something")
	}
	planned := 0
	for range 2 * idleFor / w.c.Timing.Replan {
		if !next() {
			planned++
		}
	}
	if planned < 1 || planned > 2 {
		t.Errorf("planned %d times in %s in which nothing changed", planned, 2*idleFor)
	}
	w.group.commit(&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Run: "r"})
	settle()
	for range 3 {
		v := w.group.state.Read()
		w.group.commit(&fsm.Checkpoint{Index: v.Applied(), Digest: v.Digest()})
		w.group.commit(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1", Run: "r", Upto: v.Revision()}}})
		if !w.step(t.Context()) {
			t.Error("everything was planned because copies were compared")
		}
		if !next() {
			t.Error("copies were compared, and the plan of before did not stand")
		}
	}
	server := func() {
		w.group.set(func() {
			w.group.servers = append(w.group.servers, Server{ID: fsm.ServerID(fmt.Sprint("s", len(w.group.servers)))})
		})
	}
	services := func(change func(*world.KindView)) func() {
		return func() {
			w.source.view.Kinds = slices.Clone(w.source.view.Kinds)
			change(&w.source.view.Kinds[slices.Index(world.Kinds(), world.KindService)])
		}
	}
	for name, change := range map[string]func(){
		"the record": func() { w.group.commit(&fsm.SetLiveness{Node: "n1", Liveness: fsm.NodeDown}) },
		"a member withdrew": func() {
			v := w.group.state.Read()
			w.group.commit(&fsm.ReportAnnounced{Marks: []fsm.AnnouncedMark{{Server: "m1", Run: "r", Upto: v.Revision(), Withdrawn: v.Revision()}}})
		},
		"settings":              func() { w.group.commit(&fsm.PutSettings{Settings: fsm.Settings{HistoryLimit: 9}}) },
		"a server":              server,
		"another server":        server,
		"a list":                func() { w.source.view.Services = slices.Clone(w.source.view.Services) },
		"the version of a kind": services(func(k *world.KindView) { k.Version++ }),
		"a list is not whole":   services(func(k *world.KindView) { k.Complete = !k.Complete }),
	} {
		settle()
		change()
		w.news.Add(1)
		w.lane.due = 0
		if next() {
			t.Errorf("%s changed, and the plan of before stood", name)
		}
	}
}

// What a plan of Services is made from is compared, all of it.
func TestSameViewLooksAtAllThatIsPlannedFrom(t *testing.T) {
	if n := reflect.TypeFor[Input]().NumField(); n != 10 {
		t.Errorf("Input has %d fields, and Input.same knows of 10: what plans depend on must be compared there", n)
	}
	none := PartServices.View(world.World{})
	for i := range reflect.TypeFor[world.World]().NumField() {
		field := reflect.TypeFor[world.World]().Field(i)
		var w world.World
		v := reflect.ValueOf(&w).Elem().Field(i)
		switch v.Kind() {
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		}
		w.Complete = w.Complete && field.Name == "Complete"
		planned := w
		if field.Type.Kind() == reflect.Slice && field.Name != "Kinds" {
			planned = PartServices.View(w)
		}
		of := reflect.ValueOf(planned).Field(i)
		matters := field.Name != "Problems" && field.Name != "Age" && !(of.Kind() == reflect.Slice && of.Len() == 0)
		if sameView(&planned, &none) == matters {
			t.Errorf("views that differ in %s: same %t", field.Name, matters)
		}
	}
	for i := range reflect.TypeFor[world.KindView]().NumField() {
		field := reflect.TypeFor[world.KindView]().Field(i)
		a, b := world.World{Kinds: make([]world.KindView, 1)}, world.World{Kinds: make([]world.KindView, 1)}
		switch v := reflect.ValueOf(&a.Kinds[0]).Elem().Field(i); v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Uint64:
			v.SetUint(1)
		case reflect.Int64:
			v.SetInt(1)
		}
		timeless := field.Type == reflect.TypeFor[time.Duration]() || field.Name == "Lists"
		if sameView(&a, &b) != timeless {
			t.Errorf("kinds that differ in %s: same %t", field.Name, !timeless)
		}
	}
}
