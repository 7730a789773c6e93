// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// drawn is a cluster that changes at random. It remembers how objects were that are absent without evidence.
type drawn struct {
	*cluster
	ghosts map[string]string // the line of a lost object, by "kind name"
	lines  map[string]string // of those that are there
	births int
}

func newDrawn(t *rapid.T) *drawn {
	return &drawn{cluster: newCluster(t), ghosts: map[string]string{}, lines: map[string]string{}}
}

var drawnNames = []string{
	"driver shop/d", "driver kube-system/lbcf-d", "lb shop/edge", "lb shop/lbcf-x", "lb kube-system/lbcf-x", "lb kube-system/lbcf-y",
	"group shop/g0", "group shop/g1", "group shop/g2", "group blog/g0", "bind shop/b0", "bind blog/b1", "service shop/s", "node n0", "node n1",
	"pod shop/p0", "pod shop/p1", "pod shop/p2", "pod shop/p3", "pod blog/p0", "pod blog/p1",
}

// line draws how an object looks.
func (d *drawn) line(t *rapid.T, name string) string {
	of := func(what string, choices ...string) string { return rapid.SampledFrom(choices).Draw(t, what) }
	kind, _, _ := strings.Cut(name, " ")
	uid := " uid=" + name[len(kind)+1:] + "-0"
	if old := d.lines[name]; old != "" && !rapid.Bool().Draw(t, "anew") {
		uid = old[strings.LastIndex(old, " uid="):]
	} else if old != "" || rapid.Bool().Draw(t, "another") {
		d.births++
		uid = fmt.Sprintf(" uid=u%d", d.births)
	}
	uid = strings.ReplaceAll(uid, "/", ".")
	selection := func() string {
		return of("pods", " select=app:a", " select=app:b", " select=app:a,tier:x", " names=p0,p1,p1") + of("except", "", " except=p0") +
			of("ports", " ports=80/TCP", " ports=80/TCP,53/UDP,80/TCP") + of("leave", "", " leave=IfNotRunning", " leave=Webhook judge=d failing=DoNothing") +
			of("parameters", "", " parameters=weight:1") + of("ensure", "", " ensure=Always")
	}
	switch kind {
	case "driver":
		return name + of("draining", "", " draining") + uid
	case "lb":
		scope := ""
		if strings.Contains(name, "kube-system") {
			scope = of("scope", "", " scope=*", " scope=shop", " scope=blog")
		}
		driver := "d"
		if strings.Contains(name, "lbcf-") {
			driver = "lbcf-d"
		}
		return name + " driver=" + driver + " spec=vip:" + strings.ReplaceAll(name[3:], "/", ".") + of("attributes", "", " attributes=algo:rr") + scope + " finalized" + uid
	case "group":
		lbs := " lbs=" + strings.Join(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"edge", "lbcf-x", "lbcf-y", "nowhere"}), 1, 3, rapid.ID).Draw(t, "lbs"), ",")
		switch of("backends", "pods", "pods", "service", "static") {
		case "service":
			return name + lbs + " service=s:80/TCP" + of("nodes", "", " nodes=zone:a") + of("ready", "", " onlyready") + of("excluded", "", " notexcluded") + uid
		case "static":
			return name + lbs + " static=" + of("addresses", "", "192.0.2.7:80", "192.0.2.7:80,192.0.2.8:80") + uid
		}
		return name + lbs + selection() + uid
	case "bind":
		return name + " entries=" + of("entries", "e|lbcf-d|vip:1", "e|lbcf-d|vip:1|w:2;f|lbcf-d|vip:2") + selection() + " finalized" + uid
	case "service":
		return name + " type=" + of("type", "NodePort", "NodePort", "ClusterIP") + " ports=" + of("port", "80/TCP/31080", "80/TCP/31081", "80/UDP/31080", "80/TCP/0") + uid
	case "node":
		return name + " ip=" + of("ip", "192.0.2.1", "192.0.2.2") + of("labels", "", " labels=zone:a") + of("readiness", "", " notready") + of("exclusion", "", "", " excluded") + uid
	}
	return name + of("ip", "", " ip=10.0.0.1", " ip=10.0.0.2") + of("labels", " labels=app:a,tier:x", " labels=app:a", " labels=app:b") +
		of("state", "", "", " notready", " stopped", " deleting") + uid
}

func (d *drawn) see(name, line string) {
	f := strings.Fields(line)
	d.object(f)
	d.lines[name] = line
	delete(d.ghosts, name)
	delete(d.lost, d.lostKey(name))
}

func (d *drawn) lostKey(name string) string {
	kind, rest, _ := strings.Cut(name, " ")
	return string(kindOf[kind]) + " " + rest
}

// change draws one thing that happens.
func (d *drawn) change(t *rapid.T) {
	name := rapid.SampledFrom(drawnNames).Draw(t, "object")
	kind, rest, _ := strings.Cut(name, " ")
	switch rapid.SampledFrom([]string{"see", "see", "see", "delete", "lose", "allow", "back", "work", "deleting"}).Draw(t, "what") {
	case "see":
		d.see(name, d.line(t, name))
	case "delete", "lose":
		lose := d.lines[name] != ""
		if rapid.Bool().Draw(t, "surely") || !lose {
			delete(d.lines, name)
			delete(d.ghosts, name)
			delete(d.lost, d.lostKey(name))
		} else {
			d.ghosts[name], d.lost[d.lostKey(name)] = d.lines[name], true
			delete(d.lines, name)
		}
		d.remove(kindOf[kind], splitName(rest))
	case "allow":
		delete(d.ghosts, name)
		delete(d.lost, d.lostKey(name))
	case "back":
		if line := d.ghosts[name]; line != "" {
			d.see(name, line)
		}
	case "deleting":
		if line := d.lines[name]; line != "" && (kind == "lb" || kind == "bind" || kind == "group") && !strings.Contains(line, "deleting") {
			d.see(name, name+" deleting"+strings.TrimPrefix(line, name))
		}
	case "work":
		d.record.work()
	}
}

// whole is the cluster with everything back that is absent without evidence.
func (d *drawn) whole() *cluster {
	c := &cluster{
		t: d.t, drivers: slices.Clone(d.drivers), lbs: slices.Clone(d.lbs), groups: slices.Clone(d.groups), binds: slices.Clone(d.binds),
		pods: slices.Clone(d.pods), services: slices.Clone(d.services), nodes: slices.Clone(d.nodes), lost: map[string]bool{},
	}
	for _, name := range slices.Sorted(maps.Keys(d.ghosts)) {
		c.object(strings.Fields(d.ghosts[name]))
	}
	return c
}

// finish takes finalizers off, as the projection does: objects that are being deleted go once the record has nothing of
// them any more. It tells whether any went.
func (d *drawn) finish() (went bool) {
	left := map[string]bool{}
	for _, l := range fsm.List[*fsm.LoadBalancer](d.record.state.Read(), fsm.TableBalancers) {
		left[placeOf(string(l.ID)).uid] = true
	}
	for _, b := range fsm.List[*fsm.Binding](d.record.state.Read(), fsm.TableBindings) {
		left[placeOf(b.Owner).uid] = true
	}
	for _, lb := range slices.Clone(d.lbs) {
		if lb.Deleting && !left[lb.UID] {
			d.remove(world.KindLoadBalancer, lb.ID)
			delete(d.lines, "lb "+lb.ID.String())
			went = true
		}
	}
	for _, b := range slices.Clone(d.binds) {
		if b.Deleting && !left[b.UID] {
			d.remove(world.KindBind, b.ID)
			delete(d.lines, "bind "+b.ID.String())
			went = true
		}
	}
	return went
}

// settle plans until nothing is left. Nothing goes that would be wanted if what is absent were there (INV-24), and
// nothing is proposed once nothing changes (checked by the record's settle, which ends).
func (d *drawn) settleWithEvidence(t *rapid.T) {
	whole := d.whole().expect()
	was := d.record.state.Read()
	before := fsm.List[*fsm.Binding](was, fsm.TableBindings)
	d.record.settle(d.input())
	after := d.record.state.Read()
	for _, b := range before {
		what := tuple(b.Owner, b.Balancer, b.Backend, b.Address)
		now, there := fsm.Get[*fsm.Binding](after, fsm.TableBindings, string(b.ID))
		stays := there && now.UID == b.UID && (now.State == b.State || now.State < fsm.BindingDraining)
		if !stays && b.State < fsm.BindingDraining && (whole.expected[what] || whole.keepable[what]) {
			row, _ := fsm.Get[*fsm.LoadBalancer](was, fsm.TableBalancers, string(b.Balancer))
			if row != nil && row.State == fsm.BalancerReady && !d.inherited(b) {
				t.Fatalf("%s goes, and may be wanted", what)
			}
		}
	}
}

// inherited tells whether a pod that is absent lost its address to another one that is expected in its place: that is
// evidence, too.
func (d *drawn) inherited(b *fsm.Binding) bool {
	if b.Backend.Kind != "Pod" || slices.ContainsFunc(d.pods, func(pod *world.Pod) bool { return pod.UID == b.Backend.UID }) {
		return false
	}
	place := fmt.Sprintf(" %d/%s :0 %s", b.Backend.Port, b.Backend.Protocol, b.Backend.Target)
	for what := range d.expect().expected {
		if strings.Contains(what, " on "+string(b.Balancer)+": Pod ") && strings.HasSuffix(what, place) && !strings.Contains(what, " "+b.Backend.UID+" ") {
			return true
		}
	}
	return false
}

// Sections 5.2-5.8, INV-4, INV-13, INV-24: whatever happens in whatever order, nothing goes without evidence, and once
// everything is known and drivers do what they are asked exactly what is expected is registered.
func TestPropertyWhatIsExpectedIsRegisteredAndNothingGoesWithoutEvidence(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		d := newDrawn(t)
		for _, name := range drawnNames {
			if rapid.IntRange(0, 9).Draw(t, "there") > 0 {
				d.see(name, d.line(t, name))
			}
		}
		d.record.settle(d.input())
		for d.record.work() {
			d.record.settle(d.input())
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			d.change(t)
			d.settleWithEvidence(t)
			d.finish()
		}
		for name := range d.ghosts {
			delete(d.lost, d.lostKey(name))
		}
		d.ghosts = map[string]string{}
		for round := 0; ; round++ {
			lines, _ := d.record.settle(d.input())
			went := d.finish()
			if worked := d.record.work(); !worked && !went && len(lines) == 0 {
				break
			}
			if round > 50 {
				t.Fatalf("does not come to rest: %v", lines)
			}
		}
		d.checkRegistered(t)
	})
}

// checkRegistered compares what the record has with the model, given that everything is known and done.
func (d *drawn) checkRegistered(t *rapid.T) {
	e := d.expect()
	v := d.record.state.Read()
	have := map[string]bool{}
	for _, b := range fsm.List[*fsm.Binding](v, fsm.TableBindings) {
		what := tuple(b.Owner, b.Balancer, b.Backend, b.Address)
		have[what] = true
		if !e.expected[what] && !e.keepable[what] && !d.keptWithoutAddress(e, b) {
			t.Fatalf("%s is there (%s), and nobody wants it", what, b.State)
		}
		if e.expected[what] && b.State != fsm.BindingBound {
			t.Fatalf("%s is %s", what, b.State)
		}
	}
	for what := range e.expected {
		id := what[strings.Index(what, " on ")+4 : strings.Index(what, ": ")]
		if row, known := fsm.Get[*fsm.LoadBalancer](v, fsm.TableBalancers, id); !have[what] && known && row.State == fsm.BalancerReady {
			in := d.input()
			in.Record = v
			t.Fatalf("%s is not there; waiting: %v", what, Plan(in).Waiting)
		}
	}
	out := Plan(Input{Record: v, Drivers: d.input().Drivers, LoadBalancers: d.lbs, BackendGroups: d.groups, Binds: d.binds, Pods: d.pods, Services: d.services,
		Nodes: d.nodes, Listed: d.input().Listed, Away: d.input().Away, MayRemove: d.input().MayRemove})
	for _, g := range d.groups {
		owner := balancerID(world.KindBackendGroup, &g.Meta)
		n := 0
		for what := range e.expected {
			if strings.HasPrefix(what, owner+" ") && have[what] {
				n++
			}
		}
		if got := out.Counts[owner].Backends; int(got) != n {
			t.Fatalf("%s: %d backends counted, %d expected", owner, got, n)
		}
	}
}

// keptWithoutAddress tells whether a pod is kept that lost its address: what it was registered with stays.
func (d *drawn) keptWithoutAddress(e expectation, b *fsm.Binding) bool {
	had := b.Backend
	had.Target = ""
	return e.keepable[tuple(b.Owner, b.Balancer, had, b.Address)]
}
