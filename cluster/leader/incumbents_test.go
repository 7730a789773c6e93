// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// configured are objects of every kind that the record knows by name, of an operator's namespace.
func configured() []string {
	return []string{
		"peer tor 192.0.2.254 asn=65001 home=metallb-system uid=ours", "pool p 203.0.113.1-203.0.113.9 home=metallb-system uid=ours",
		"advertisement all communities=no-export home=metallb-system uid=ours", "l2 lan pools=p home=metallb-system uid=ours",
	}
}

// rivalOf draws a line with the name of one of configured, for another object.
func rivalOf(t *rapid.T) string {
	line := one(t, "object", "peer tor 192.0.2.66 asn=65666", "pool p 198.51.100.1-198.51.100.9", "advertisement all communities=no-advertise", "l2 lan pools=none")
	return line + " home=" + one(t, "home", "", "a-first", "kube-system", "metallb-system", "z-last") + " uid=" + one(t, "uid", "a", "thief", "z")
}

// addBeside puts an object into a world beside those of its name, with a time of creation.
func addBeside(t failer, w *world.World, line string, created uint32) {
	other := newScene(t)
	other.line(line)
	for _, p := range other.world.Pools {
		p.Created = created
	}
	for _, p := range other.world.Peers {
		p.Created = created
	}
	w.Pools, w.Peers = append(w.Pools, other.world.Pools...), append(w.Peers, other.world.Peers...)
	w.Advertisements = append(w.Advertisements, other.world.Advertisements...)
	w.L2Advertisements = append(w.L2Advertisements, other.world.L2Advertisements...)
	w.Sort()
}

// Whoever comes with a name that the group has from another object gets nothing by it, wherever he is, however old and in whichever source,
// also while the other one cannot be used; and the other one is edited as before.
func TestPropertyNewcomersTakeNoNameOver(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		s := newScene(t)
		for _, line := range append(configured(), "node n1 192.0.2.1", "service web", "endpoints web n1/10.0.0.1") {
			s.line(line)
		}
		s.group.settle(s.input())
		in := s.input()
		before := s.group.state.Read().Digest()
		for range rapid.IntRange(1, 4).Draw(t, "rivals") {
			rival, created := rivalOf(t), uint32(rapid.IntRange(0, 3).Draw(t, "created"))
			switch one(t, "source", "same", "earlier", "later") {
			case "same":
				addBeside(t, in.Views[0].World, rival, created)
			case "earlier":
				in.Views = append([]Admitted{{World: &world.World{Source: "other"}, Complete: true}}, in.Views...)
				addBeside(t, in.Views[0].World, rival, created)
			default:
				in.Views = append(in.Views, Admitted{World: &world.World{Source: "other"}, Complete: true})
				addBeside(t, in.Views[len(in.Views)-1].World, rival, created)
			}
		}
		if rapid.Bool().Draw(t, "ours is unusable") {
			loseForm(in.Views, "ours")
			in.Views = forbidAll(in.Views) // as guards do of what is there
		}
		if lines := s.group.settle(in); len(lines) > 0 || s.group.state.Read().Digest() != before {
			t.Fatalf("a newcomer changed the record: %s", strings.Join(lines, "; "))
		}
	})
}

func forbidAll(views []Admitted) []Admitted {
	for i := range views {
		views[i].MayRemove = func(world.Kind, world.ID) bool { return false }
	}
	return views
}

// loseForm has the objects of a UID be there in a form that cannot be used.
func loseForm(views []Admitted, uid string) {
	for _, a := range views {
		w := a.World
		lose := func(kind world.Kind, m *world.Meta) bool {
			if m.UID == uid {
				w.Unusable = append(w.Unusable, m.Ref(kind))
			}
			return m.UID == uid
		}
		w.Pools = slices.DeleteFunc(slices.Clone(w.Pools), func(o *world.Pool) bool { return lose(world.KindPool, &o.Meta) })
		w.Peers = slices.DeleteFunc(slices.Clone(w.Peers), func(o *world.Peer) bool { return lose(world.KindPeer, &o.Meta) })
		w.Advertisements = slices.DeleteFunc(slices.Clone(w.Advertisements), func(o *world.Advertisement) bool { return lose(world.KindAdvertisement, &o.Meta) })
		w.L2Advertisements = slices.DeleteFunc(slices.Clone(w.L2Advertisements), func(o *world.L2Advertisement) bool { return lose(world.KindL2Advert, &o.Meta) })
	}
}

// What counts is followed, what does not is told of, and once the one is gone the other one has the name: first one of its namespace.
func TestNameGoesOnOnceItsObjectIsGone(t *testing.T) {
	s := newScene(t)
	s.line("peer tor 192.0.2.254 asn=65001 home=metallb-system uid=ours")
	s.group.settle(s.input())
	plan := func(lines ...string) (out []string, waits []Explanation) {
		in := s.input()
		in.Views[0].World.Peers = nil
		for _, line := range lines {
			addBeside(t, in.Views[0].World, line, 0)
		}
		out = s.group.settle(in)
		in.Record = s.group.state.Read()
		return out, Plan(in).Waiting
	}
	thief := "peer tor 192.0.2.66 asn=65666 home=kube-system uid=thief"
	lines, waits := plan(thief, "peer tor 192.0.2.254 asn=65002 home=metallb-system uid=ours")
	if !slices.Equal(lines, []string{"PutPeer tor"}) && (len(lines) != 1 || !strings.HasPrefix(lines[0], "PutPeer tor")) {
		t.Errorf("an edit is not followed: %q", lines)
	}
	want := Explanation{"peers", "tor", WaitsForOverlap, "BGPPeer kube-system/tor does not count: metallb-system/tor had the name first; rename or remove one of them"}
	if !slices.Contains(waits, want) {
		t.Errorf("nobody is told: %v", waits)
	}
	asn := func() string {
		p, _ := fsm.Get[*fsm.Peer](s.group.state.Read(), fsm.TablePeers, "tor")
		return fmt.Sprintf("%d of %s", p.ASN, p.Object.UID)
	}
	plan(thief, "peer tor 192.0.2.254 asn=65003 home=metallb-system uid=again")
	if got := asn(); got != "65003 of again" {
		t.Errorf("what comes in the place of the object is passed by: %s", got)
	}
	plan(thief)
	if got := asn(); got != "65666 of thief" {
		t.Errorf("nobody has the name of what is gone: %s", got)
	}
}

// What the group has from a namespace that does not count any more stays as it was while its object is there, is told of, and goes with it; others
// of the name there are nothing to it.
func TestWhatDoesNotCountAnyMoreStaysAsItWas(t *testing.T) {
	s := newScene(t)
	s.line("pool p 203.0.113.1-203.0.113.9 home=network uid=old")
	s.line("service web")
	s.group.settle(s.input())
	known := KnownOf(s.group.state.Read(), "script", PartServices)
	elsewhere := func(home string) (present bool) {
		w := s.world.Clone()
		w.Pools, w.Unusable = nil, []world.Ref{{Kind: world.KindPool, ID: world.ID{Namespace: home, Name: "p"}, UID: "old"}}
		w.Complete = true
		for _, k := range PartServices.kinds() {
			w.Kinds = append(w.Kinds, world.KindView{Kind: k, Listed: true, Complete: true, Lists: 1})
		}
		guard := NewGuard(Limits{})
		for i := range 3 {
			for k := range w.Kinds {
				w.Kinds[k].Lists = uint64(i + 1)
			}
			v := guard.Judge(2*guard.limits.Confirm*time.Duration(i), &w, &known)
			if v.MayRemove(world.KindPool, world.ID{Name: "p"}) {
				return false
			}
		}
		return true
	}
	if !elsewhere("network") {
		t.Error("it is taken for gone though it is there")
	}
	if elsewhere("other") {
		t.Error("one of another namespace is taken for it")
	}
	problem := world.Problem{Severity: world.Failed, Object: world.Ref{Kind: world.KindPool, ID: world.ID{Namespace: "network", Name: "p"}}, Why: "not from there"}
	in := s.input()
	in.Views[0].World.Pools, in.Views[0].World.Problems = nil, []world.Problem{problem}
	in.Views[0].MayRemove = func(kind world.Kind, _ world.ID) bool { return kind != world.KindPool }
	if lines := s.group.settle(in); len(lines) > 0 {
		t.Errorf("it does not stay: %q", lines)
	}
	in.Record = s.group.state.Read()
	if waits := Plan(in).Waiting; !slices.ContainsFunc(waits, func(e Explanation) bool {
		return e.Kind == "pools" && e.Code == WaitsForMend && strings.Contains(e.Text, "not from there")
	}) {
		t.Errorf("nobody is told: %v", waits)
	}
}
