// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// Sections 2.2, 4, 9: what a policy is told of each state of the record.
// Rule: balancing §2.
func TestConditionsSayWhatBecameOfAPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		row  *fsm.PutPolicy // nil: none
		said Said
		seen *Seen
		want map[string]string // the beginning of each
	}{
		"as it asks": {aPolicy(), Said{}, seen(), map[string]string{
			Accepted: "True Accepted: captures 1 place, as number 1", Programmed: "True Programmed: all 1 nodes", BackendsAvailable: "True Available: 1 of 3 are ready", Conflict: "False NoConflict: ",
		}},
		"not taken in yet":    {nil, Said{}, seen(), map[string]string{Accepted: "Unknown Pending", Programmed: "False Pending", Conflict: "Unknown"}},
		"format":              {nil, Said{Code: "format", Text: "run finalize"}, seen(), map[string]string{Accepted: "False RecordFormat: run finalize"}},
		"evidence":            {aPolicy(), Said{Code: "evidence", Text: "absent"}, seen(), map[string]string{Accepted: "Unknown NoEvidence: absent"}},
		"invalid":             {nil, Said{Invalid: []string{"spec: x", "spec: y"}}, seen(), map[string]string{Accepted: "False Invalid: spec: x; spec: y"}},
		"invalid, used so":    {aPolicy(), Said{Invalid: []string{"spec: x"}}, seen(), map[string]string{Accepted: "False Invalid: spec: x; its last good form stays in use", Programmed: "True"}},
		"not as written":      {aPolicy(), Said{Unused: []string{"spec: z"}}, seen(), map[string]string{Accepted: "True NotAsWritten: spec: z"}},
		"of another life":     {aPolicy(), Said{}, seen(func(s *Seen) { s.UID = "u2" }), map[string]string{Accepted: "Unknown Pending", BackendsAvailable: "Unknown"}},
		"no Service":          {aPolicy(pends("no-service", "none"), nothing), Said{}, seen(), map[string]string{Accepted: "False NoService: none", Programmed: "False NothingCaptured", BackendsAvailable: "Unknown"}},
		"no ClusterIP":        {aPolicy(pends("no-cluster-ip", "headless"), nothing), Said{}, seen(), map[string]string{Accepted: "False NoClusterIP: headless"}},
		"no port":             {aPolicy(pends("no-port", "81"), nothing), Said{}, seen(), map[string]string{Accepted: "False NoPort: 81"}},
		"some ports":          {aPolicy(pends("no-port", "81")), Said{}, seen(), map[string]string{Accepted: "True PortsMissing: 81; the others", Programmed: "True"}},
		"conflict":            {aPolicy(pends("conflict", "BalancingPolicy a captures it")), Said{}, seen(), map[string]string{Accepted: "True", Conflict: "True Overruled: BalancingPolicy a"}},
		"no backend":          {aPolicy(pends("no-backend", "refused"), func(r *fsm.Policy) { r.Backends = nil }), Said{}, seen(), map[string]string{BackendsAvailable: "False NoBackend: refused", Programmed: "True"}},
		"none of the family":  {aPolicy(pends("conflict", "x"), func(r *fsm.Policy) { r.Backends = r.Backends[2:3] }), Said{}, seen(), map[string]string{BackendsAvailable: "False NoBackend", Conflict: "True"}},
		"none ready":          {aPolicy(func(r *fsm.Policy) { r.Backends = r.Backends[1:] }), Said{}, seen(), map[string]string{BackendsAvailable: "True NoneReady: none of 2"}},
		"none ready, local":   {aPolicy(func(r *fsm.Policy) { r.Mode, r.Backends = "local", r.Backends[1:] }), Said{}, seen(), map[string]string{BackendsAvailable: "False NoBackend"}},
		"nobody does that":    {aPolicy(pends("not-carried-out", "proxy"), nothing), Said{}, seen(), map[string]string{Accepted: "False NotCarriedOut: proxy"}},
		"no proxy address":    {aPolicy(pends("no-proxy-address", "yet"), nothing), Said{}, seen(), map[string]string{Accepted: "False NoProxyAddress: yet"}},
		"somebody's port":     {aPolicy(pends("proxy-port", "10080"), nothing), Said{}, seen(), map[string]string{Accepted: "False ProxyPort: 10080"}},
		"withdrawn":           {aPolicy(func(r *fsm.Policy) { r.EveryNode, r.Outside = false, false }), Said{}, seen(func(s *Seen) { s.Disabled = true }), map[string]string{Accepted: "True", Programmed: "False Disabled"}},
		"without sock at all": {aPolicy(func(r *fsm.Policy) { r.EveryNode, r.Nodes = false, []fsm.NodeID{"n2"} }), Said{}, seen(), map[string]string{Programmed: "False NoNodes"}},
	} {
		t.Run(strings.ReplaceAll(strings.ReplaceAll(name, ",", ""), " ", "-"), func(t *testing.T) {
			b := newBook(t)
			b.node(t, "n2", false)
			if c.row != nil {
				b.must(t, c.row)
			}
			b.node(t, "n1", true)
			w := Project(b.Read(), c.said, c.seen, noon)
			if w == nil {
				t.Fatal("nothing is written")
			}
			got := says(t, &w.Status)
			for kind, want := range c.want {
				if !strings.HasPrefix(got[kind], want) {
					t.Errorf("%s is %q, want %q", kind, got[kind], want)
				}
			}
			if again := Project(b.Read(), c.said, w.shown(c.seen), noon.Add(time.Hour)); again != nil {
				t.Errorf("written again: %+v", again.Status)
			}
		})
	}
}

func nothing(r *fsm.Policy) { r.Captures, r.Backends = nil, nil }

// Section 6: selectors choose among the pods of all namespaces, and how many of each is shown.
// Rule: balancing §6.
func TestPodsAreCountedByNamespace(t *testing.T) {
	b := newBook(t)
	b.must(t, aPolicy())
	w := Project(b.Read(), Said{}, seen(), noon)
	if got := fmt.Sprint(w.Status.Pods, w.Status.Frontends, w.Status.Backends); got != "[{lab 1 0} {shop 2 1}] 1 3" {
		t.Errorf("%s", got)
	}
	many := aPolicy(func(r *fsm.Policy) {
		r.Backends = nil
		for i := range 2 * maxNamespaces {
			for j := range 1 + i%2 {
				r.Backends = append(r.Backends, fsm.PolicyBackend{Address: netip.AddrFrom4([4]byte{10, byte(j), 0, byte(i)}), Pod: fmt.Sprintf("ns%03d/%d", i, j)})
			}
		}
	})
	b.must(t, many)
	w = Project(b.Read(), Said{}, seen(), noon)
	if p := w.Status.Pods; len(p) != maxNamespaces || p[0].Namespace != "ns001" || p[0].Selected != 2 {
		t.Errorf("%d namespaces, the first %+v", len(p), p[0])
	}
}

// What is shown of programming is what a look at every node says, whatever nodes do; and scan names every policy of which that changed.
func TestPropertyProgrammedNodesHaveAcknowledgedThePolicyAsItIs(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		b := newBook(t)
		nodes := []fsm.NodeID{"n1", "n2", "n3"}
		type host struct{ carries, has bool }
		hosts := map[fsm.NodeID]*host{}
		var on []fsm.NodeID // nil: every node
		exists := false
		var before *fsm.View
		var last *Write
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			n := rapid.SampledFrom(nodes).Draw(t, "node")
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				on = rapid.SampledFrom([][]fsm.NodeID{nil, {"n1"}, {"n1", "n2"}}).Draw(t, "on")
				b.must(t, aPolicy(func(r *fsm.Policy) {
					r.EveryNode, r.Nodes = on == nil, on
					r.Created, r.Version = int64(b.Applied()), 100+uint64(b.Applied()) // so that hosts are told another thing
				}))
				exists = true
				for _, h := range hosts {
					h.has = false
				}
			case 1:
				if exists { // hosts are told the same
					r, _ := fsm.Get[*fsm.Policy](b.Read(), fsm.TablePolicies, policyID)
					next := *r
					next.Version, next.Pending = 100+uint64(b.Applied()), fsm.Pending{Code: "no-port", Text: fmt.Sprint(b.Applied())}
					b.must(t, &fsm.PutPolicy{Policy: next})
				}
			case 2, 3:
				if hosts[n] == nil {
					b.must(t, &fsm.PutNode{ID: n}, &fsm.RegisterBoot{Node: n, Boot: "b1"})
					hosts[n] = &host{}
				}
				hosts[n].carries = rapid.Bool().Draw(t, "carries")
				b.must(t, &fsm.ReportPolicySupport{Node: n, Boot: "b1", Carries: hosts[n].carries})
			case 4:
				if hosts[n] != nil {
					b.acknowledge(t, n)
					hosts[n].has = exists
				}
			case 5:
				if hosts[n] != nil {
					b.must(t, &fsm.RegisterBoot{Node: n, Boot: "b2"}, &fsm.RegisterBoot{Node: n, Boot: "b1"})
					hosts[n].has = false
				}
			}
			v := b.Read()
			concerned, all := scan(before, v)
			before = v
			w := Project(v, Said{}, seen(), noon)
			if w != nil && last != nil && !all && !concerned[policyID] && w.digest() != last.digest() {
				t.Fatalf("scan says that nothing is new: %+v after %+v", w.Status, last.Status)
			}
			last = w
			able, has := 0, 0
			for id, h := range hosts {
				if exists && h.carries && (on == nil || slices.Contains(on, id)) {
					able++
					if h.has {
						has++
					}
				}
			}
			programmed := find(w.Status.Conditions, Programmed)
			if want := able > 0 && has == able; (programmed.Status == metav1.ConditionTrue) != want || int(w.Status.Nodes) != has {
				t.Fatalf("%d nodes and %+v, want %d of %d", w.Status.Nodes, programmed, has, able)
			}
		}
	})
}

// Others' conditions are none of our business.
func TestConditionsOfOthersAreLeftAlone(t *testing.T) {
	b := newBook(t)
	b.must(t, aPolicy())
	w := Project(b.Read(), Said{}, seen(), noon)
	s := w.shown(seen())
	s.Status.Conditions = append(s.Status.Conditions, condition("example.com/Reviewed", yes, "Reviewed", ""))
	if again := Project(b.Read(), Said{}, s, noon); again != nil {
		t.Errorf("written: %+v", again.Status)
	}
	s.Status.Conditions = slices.DeleteFunc(slices.Clone(s.Status.Conditions), func(c metav1.Condition) bool { return c.Type == Conflict })
	if again := Project(b.Read(), Said{}, s, noon); again == nil || len(again.Status.Conditions) != 4 {
		t.Errorf("not put back, or with more than ours: %+v", again)
	}
	if Project(b.Read(), Said{}, seen(func(s *Seen) { s.Going = true }), noon) != nil {
		t.Error("written to a policy that is going")
	}
}

// Events tell what changed, once, and nothing that an earlier leader told already.
// Rule: balancing §9.
func TestEventsTellWhatChanged(t *testing.T) {
	at := func(said Said, change ...func(*fsm.Policy)) story {
		b := newBook(t)
		b.node(t, "n1", true)
		b.must(t, aPolicy(change...))
		w := Project(b.Read(), said, seen(), noon)
		return storyOf(&w.Status, &said)
	}
	fine := at(Said{})
	none := at(Said{}, pends("no-backend", "refused"), func(r *fsm.Policy) { r.Backends = nil })
	for name, c := range map[string]struct {
		before, now story
		want        string
	}{
		"first seen":     {story{}, fine, "Accepted"},
		"nothing":        {fine, fine, ""},
		"no backend":     {fine, none, "!NoBackend"},
		"back again":     {none, fine, "BackendsAvailable"},
		"conflict":       {fine, at(Said{}, pends("conflict", "x")), "!Conflict"},
		"another one":    {at(Said{}, pends("conflict", "x")), at(Said{}, pends("conflict", "y")), "!Conflict"},
		"conflict over":  {at(Said{}, pends("conflict", "x")), fine, "ConflictOver"},
		"no Service":     {fine, at(Said{}, pends("no-service", "x"), nothing), "!NoService"},
		"not as written": {fine, at(Said{Unused: []string{"z"}}), "!NotAsWritten"},
		"still so":       {at(Said{Unused: []string{"z"}}), at(Said{Unused: []string{"z", "y"}}), "!NotAsWritten"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			var got []string
			for _, e := range tell(&c.before, &c.now) {
				if e.warning {
					e.reason = "!" + e.reason
				}
				got = append(got, e.reason)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("told %q, want %q", got, c.want)
			}
		})
	}
	b := newBook(t)
	b.must(t, aPolicy(pends("conflict", "x")))
	said := Said{Unused: []string{"z"}}
	w := Project(b.Read(), said, seen(), noon)
	now := storyOf(&w.Status, &said)
	if again := tell(recall(&w.Status, &now), &now); len(again) > 0 {
		t.Errorf("a next leader tells %+v again", again)
	}
}

// The API server takes a note of 1,024 bytes that are characters, and refuses an Event that ends within one.
func TestNotesOfEventsAreCutBetweenCharacters(t *testing.T) {
	told := telling{reason: "Accepted", note: "x" + strings.Repeat("é", longestNote)}
	e := told.event(&Seen{ID: policyID, UID: "u1"}, fsm.Revision{}, "m1", noon)
	if want := "x" + strings.Repeat("é", longestNote/2-1); e.Note != want {
		t.Errorf("a note of %d bytes, want %d: ends in %q", len(e.Note), len(want), e.Note[len(e.Note)-3:])
	}
}
