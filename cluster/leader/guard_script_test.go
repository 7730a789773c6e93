// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"fairlead.io/fairlead/fsm/world"
)

// TestGuardScripts tells the guard's rules as stories. A script keeps a record as a leader would: what a usable view
// shows is added, what the verdict lets go is removed, holds are put down and lifted.
//
//	record services=(a,b) nodes=(n) endpoints=(a) acted=7   what the record holds already
//	view at=1s list=2 services=(a) slices=(a/a-1)           a view, and the verdict on it
//	release HOLD                                            an operator's word
func TestGuardScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/guard", func(t *testing.T, path string) {
		s := &story{guard: NewGuard(Limits{}), objects: map[KnownObject]bool{}, known: Known{Versions: map[world.Kind]uint64{}}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "record":
				return s.record(t, d)
			case "view":
				return s.view(t, d)
			case "release":
				return s.release(d.CmdArgs[0].Key)
			case "limits":
				var l Limits
				d.ScanArgs(t, "burst", &l.Burst)
				d.ScanArgs(t, "per-second", &l.PerSecond)
				s.guard = NewGuard(l)
				return "ok"
			case "accept-rewind":
				s.known.RewindAccepted = true
				return "ok"
			case "new-leader":
				s.guard = NewGuard(Limits{})
				return "ok"
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

type story struct {
	guard   *Guard
	known   Known
	objects map[KnownObject]bool
}

func names(d *datadriven.TestData, arg string) []string {
	var out []string
	for _, a := range d.CmdArgs {
		if a.Key == arg {
			for _, v := range a.Vals {
				out = append(out, expand(v)...)
			}
		}
	}
	return out
}

// expand turns "s1..s3" into s1, s2, s3.
func expand(v string) []string {
	from, to, ok := strings.Cut(v, "..")
	if !ok {
		return []string{v}
	}
	var a, b int
	if _, err := fmt.Sscanf(from[1:]+" "+to[1:], "%d %d", &a, &b); err != nil {
		panic(fmt.Sprintf("%s: %v", v, err))
	}
	var out []string
	for i := a; i <= b; i++ {
		out = append(out, fmt.Sprintf("%s%d", from[:1], i))
	}
	return out
}

func uidOf(name string) (string, string) {
	name, uid, ok := strings.Cut(name, "#")
	if !ok {
		uid = "u-" + name
	}
	return name, uid
}

func serviceID(name string) world.ID { return world.ID{Namespace: "default", Name: name} }

func (s *story) record(t *testing.T, d *datadriven.TestData) string {
	for _, n := range names(d, "services") {
		name, uid := uidOf(n)
		s.objects[KnownObject{world.KindService, serviceID(name), uid}] = true
	}
	for _, n := range names(d, "nodes") {
		name, uid := uidOf(n)
		s.objects[KnownObject{world.KindNode, world.ID{Name: name}, uid}] = true
	}
	for _, n := range names(d, "endpoints") {
		s.objects[KnownObject{Kind: world.KindEndpointSlice, ID: serviceID(n)}] = true
	}
	var acted uint64
	d.MaybeScanArgs(t, "acted", &acted)
	if acted != 0 {
		for _, k := range world.Kinds() {
			s.known.Versions[k] = acted
		}
	}
	for _, kind := range names(d, "forgotten") {
		delete(s.known.Versions, world.Kind(kind))
	}
	d.MaybeScanArgs(t, "cluster", &s.known.Cluster)
	return fmt.Sprintf("%d objects", len(s.objects))
}

func (s *story) view(t *testing.T, d *datadriven.TestData) string {
	var at string
	d.ScanArgs(t, "at", &at)
	now, err := time.ParseDuration(at)
	if err != nil {
		t.Fatal(err)
	}
	w := scriptedWorld(t, d)
	s.known.Objects = nil
	for o := range s.objects {
		s.known.Objects = append(s.known.Objects, o)
	}
	slices.SortFunc(s.known.Objects, func(a, b KnownObject) int { return subject(a).compare(subject(b)) })
	v := s.guard.Judge(now, &w, &s.known)
	s.apply(&w, &v, d.HasArg("uncommitted"))
	if d.HasArg("tell-versions") {
		return fmt.Sprintf("%v", v.Versions)
	}
	return describe(&v)
}

func scriptedWorld(t *testing.T, d *datadriven.TestData) world.World {
	w := world.World{Source: "test", Cluster: "c1", WholeCluster: true, Complete: true}
	var list, version uint64 = 1, 0
	var ageText, incomplete, behind string
	d.MaybeScanArgs(t, "cluster", &w.Cluster)
	d.MaybeScanArgs(t, "whole", &w.WholeCluster)
	d.MaybeScanArgs(t, "list", &list)
	d.MaybeScanArgs(t, "version", &version)
	d.MaybeScanArgs(t, "age", &ageText)
	d.MaybeScanArgs(t, "incomplete", &incomplete)
	d.MaybeScanArgs(t, "behind", &behind)
	current := names(d, "current")
	age, _ := time.ParseDuration(ageText)
	for _, k := range PartServices.kinds() {
		v := world.KindView{Kind: k, Listed: true, Complete: incomplete != string(k), Lists: list, Version: version, Age: age, ListAge: age, ListedAge: age}
		if behind == string(k) {
			v.Version--
		}
		if slices.Contains(current, string(k)) {
			v.Version, v.ListAge = v.Version+1000, v.ListAge+1000*time.Second
		}
		w.Kinds = append(w.Kinds, v)
	}
	if w.WholeCluster {
		w.Services = append(w.Services, &world.Service{Meta: world.Meta{ID: serviceID("kubernetes")}})
	}
	for _, n := range names(d, "services") {
		name, deleting := strings.CutSuffix(n, "!")
		name, uid := uidOf(name)
		w.Services = append(w.Services, &world.Service{Meta: world.Meta{ID: serviceID(name), UID: uid, Version: version, Deleting: deleting}})
	}
	for _, n := range names(d, "nodes") {
		name, uid := uidOf(n)
		w.Nodes = append(w.Nodes, &world.Node{Meta: world.Meta{ID: world.ID{Name: name}, UID: uid}})
	}
	for _, n := range names(d, "slices") {
		service, slice, _ := strings.Cut(n, "/")
		w.EndpointSlices = append(w.EndpointSlices, &world.EndpointSlice{
			Meta: world.Meta{ID: serviceID(slice), UID: "u-" + slice}, ServiceName: serviceID(service).Name})
	}
	for _, how := range []world.How{world.ByWatch, world.ByScan} {
		for _, n := range names(d, string(how)) {
			gone := world.Deletion{How: how, Ref: world.Ref{Kind: world.KindService}}
			if service, slice, ok := strings.Cut(n, "/"); ok {
				gone.Kind, gone.Service, n = world.KindEndpointSlice, serviceID(service), slice
			}
			name, uid := uidOf(n)
			gone.ID, gone.UID = serviceID(name), uid
			w.Deleted = append(w.Deleted, gone)
		}
	}
	for _, n := range names(d, "unusable") {
		w.Unusable = append(w.Unusable, world.Ref{Kind: world.KindService, ID: serviceID(n)})
	}
	for _, n := range names(d, "unusable-slice") {
		w.Unusable = append(w.Unusable, world.Ref{Kind: world.KindEndpointSlice, ID: serviceID(n)})
	}
	w.Sort()
	return w
}

// apply does to the record what a leader would propose; its commits may be slow.
func (s *story) apply(w *world.World, v *Verdict, uncommitted bool) {
	if uncommitted {
		return
	}
	for _, h := range v.Hold {
		s.known.Holds = append(s.known.Holds, KnownHold{ID: h.ID, Kind: h.Kind, Subjects: h.Subjects})
	}
	s.known.Holds = slices.DeleteFunc(s.known.Holds, func(h KnownHold) bool { return slices.Contains(v.Lift, h.ID) })
	for _, r := range v.Gone {
		delete(s.objects, r.KnownObject)
	}
	if !v.Act {
		return
	}
	s.known.Cluster, s.known.RewindAccepted = v.Cluster, false
	for _, k := range v.Versions {
		s.known.Versions[k.Kind] = k.Version
	}
	for i := range w.Services {
		if m := w.Services[i].Meta; m.Name != "kubernetes" && !m.Deleting {
			s.objects[KnownObject{world.KindService, m.ID, m.UID}] = true
		}
	}
	for i := range w.Nodes {
		s.objects[KnownObject{world.KindNode, w.Nodes[i].ID, w.Nodes[i].UID}] = true
	}
	for i := range w.EndpointSlices {
		s.objects[KnownObject{Kind: world.KindEndpointSlice, ID: w.EndpointSlices[i].Service()}] = true
	}
}

func (s *story) release(id string) string {
	for i := range s.known.Holds {
		if strings.HasPrefix(s.known.Holds[i].ID, id) {
			s.known.Holds[i].Released = true
			return "released"
		}
	}
	return "no such hold"
}

func describe(v *Verdict) string {
	var b strings.Builder
	if !v.Act {
		fmt.Fprintf(&b, "not acted on: %s\n", v.Why)
	}
	if v.Rewind != nil {
		fmt.Fprintf(&b, "rewind: %v after %v\n", v.Rewind.Older[0], v.Rewind.Seen[0])
	}
	var lines []string
	for _, g := range v.Gone {
		lines = append(lines, fmt.Sprintf("gone: %s\n%s\n%s", g.Kind, g.ID.Name, g.Evidence))
	}
	for _, g := range v.Waiting {
		lines = append(lines, fmt.Sprintf("waits: %s\n%s\n%s", g.Kind, g.ID.Name, g.Why))
	}
	b.WriteString(together(lines))
	for _, h := range v.Hold {
		fmt.Fprintf(&b, "hold: %d of %s: %s\n", len(h.Subjects), h.Kind, h.Why)
	}
	if len(v.Lift) > 0 {
		fmt.Fprintf(&b, "lift: %d\n", len(v.Lift))
	}
	if len(v.Relist) > 0 {
		fmt.Fprintf(&b, "relist: %v\n", v.Relist)
	}
	if v.Again > 0 {
		fmt.Fprintf(&b, "again after %v\n", v.Again)
	}
	if b.Len() == 0 {
		return "acted on"
	}
	return b.String()
}

// together joins the names of lines that differ in nothing else.
func together(lines []string) string {
	var b strings.Builder
	for i := 0; i < len(lines); {
		part := strings.Split(lines[i], "\n")
		names := []string{part[1]}
		for i++; i < len(lines); i++ {
			next := strings.Split(lines[i], "\n")
			if next[0] != part[0] || next[2] != part[2] {
				break
			}
			names = append(names, next[1])
		}
		fmt.Fprintf(&b, "%s %s: %s\n", part[0], strings.Join(names, " "), part[2])
	}
	return b.String()
}
