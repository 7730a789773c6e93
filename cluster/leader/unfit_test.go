// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/internal/testkit"
)

// sifting is a group that sets aside what no entry can hold, as cluster.Node does, and takes no more than so many commands at once.
type sifting struct {
	*liveGroup
	most int
}

func (g *sifting) Propose(ctx context.Context, u Urgency, proposals []fsm.Proposal) ([]fsm.Outcome, error) {
	if g.most > 0 && len(proposals) > g.most {
		return nil, fmt.Errorf("test: %w", fsm.ErrTooLarge)
	}
	var out []fsm.Outcome
	for _, p := range proposals {
		if _, err := fsm.Fit(p); err != nil {
			out = append(out, fsm.Unfit(p, err))
			continue
		}
		one, err := g.liveGroup.Propose(ctx, u, []fsm.Proposal{p})
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return out, nil
}

// A Service whose annotation is no text is told of and stays out of the record; all others are planned beside it, at once, also in entries
// that hold less than a plan has.
func TestOneServiceDoesNotStopThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, f := &sifting{liveGroup: newLiveGroup(t), most: 3}, newFolder(t)
		f.write("node n1 192.0.2.1", "service bad ip=203.0.113.66 share=k\xff", "endpoints bad n1/10.0.0.9")
		l, stop := lead(t, Config{Sources: []NamedSource{{"folder", f}}, Record: g.state, Group: g, Limits: fastLimits()})
		testkit.Eventually(t, "what was set aside", func() error {
			if waiting := l.Status().Waiting; !slices.ContainsFunc(waiting, func(e Explanation) bool {
				return e.Kind == string(fsm.TableServices) && e.Name == "default/bad" && e.Code == WaitsForMend && strings.Contains(e.Text, "SharingKey: not UTF-8")
			}) {
				return fmt.Errorf("waiting: %+v", waiting)
			}
			return nil
		})
		began := time.Now()
		f.write("service shop ip=203.0.113.20", "endpoints shop n1/10.0.0.1")
		testkit.Eventually(t, "the hops", want(g.state, "203.0.113.20", "n1=wanted "))
		if took := time.Since(began); took > time.Second {
			t.Errorf("planned beside it after %v", took)
		}
		f.delete("service", "bad")
		f.delete("endpoints", "bad")
		testkit.Eventually(t, "nothing waits", func() error {
			if waiting := l.Status().Waiting; slices.ContainsFunc(waiting, func(e Explanation) bool { return e.Name == "default/bad" }) {
				return fmt.Errorf("waiting: %+v", waiting)
			}
			return nil
		})
		stop()
	})
}

// Whatever texts objects have, each plan's commands are encoded or set aside one by one, only those of foul objects are, and the others come
// to what they do without those.
func TestPropertyNoObjectStopsAnother(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		good := []string{"node n1 192.0.2.1", "node n2 192.0.2.2"}
		for i := range rapid.IntRange(1, 3).Draw(t, "good") {
			good = append(good, fmt.Sprintf("service good%d ip=203.0.113.%d", i, i+1), fmt.Sprintf("endpoints good%d n1/10.0.0.%d n2/10.0.1.%d", i, i+1, i+1))
		}
		alone, beside := newFolder(t), newFolder(t)
		alone.write(good...)
		beside.write(good...)
		for i := range rapid.IntRange(1, 3).Draw(t, "foul") {
			beside.write(fmt.Sprintf("service foul%d ip=203.0.113.%d", i, i+100), fmt.Sprintf("endpoints foul%d n1/10.0.0.%d", i, i+100), fmt.Sprintf("node foul%d 192.0.2.%d", i, i+100))
			text := foulText(t)
			w := &beside.scene.world
			s := w.Services[slices.IndexFunc(w.Services, func(s *world.Service) bool { return s.Name == fmt.Sprint("foul", i) })]
			n := w.Nodes[slices.IndexFunc(w.Nodes, func(n *world.Node) bool { return n.Name == fmt.Sprint("foul", i) })]
			switch rapid.IntRange(0, 4).Draw(t, "where") {
			case 0:
				s.Extra = &world.Extra{SharingKey: text, Requested: s.Extras().Requested}
			case 1:
				s.UID = text
			case 2:
				s.Ports = append(s.Ports, world.ServicePort{Name: text, Protocol: world.TCP, Port: 81})
			case 3:
				n.Labels = append(n.Labels, world.KV{Key: "topology.kubernetes.io/zone", Value: text})
			case 4:
				n.UID = text
			}
		}
		want := committedGood(t, alone)
		if have := committedGood(t, beside); have != want || !strings.Contains(have, "n1=wanted n2=wanted") {
			t.Fatalf("beside foul objects\n%s\nwithout them\n%s", have, want)
		}
	})
}

func foulText(t *rapid.T) string {
	return rapid.OneOf(
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }), rapid.Just("k\xff"), rapid.Just(strings.Repeat("x", 70_000)), rapid.String(),
	).Draw(t, "text")
}

// committedGood plans what a folder shows until nothing changes any more, and tells what became of good objects.
func committedGood(t *rapid.T, f *folder) string {
	g := newGroup(t)
	for range maxRounds {
		f.scene.group = g
		in := f.scene.input()
		in.Record = g.state.Read()
		out := Plan(in)
		for _, p := range all(out) {
			if _, err := fsm.Fit(p); err == nil {
				g.propose([]fsm.Proposal{p}, 1)
			} else if name := fsm.NameOf(p.Command); !strings.Contains(name, "foul") && !strings.HasPrefix(name, "203.0.113.10") {
				t.Fatalf("%s is set aside: %v", fsm.ObjectOf(p.Command), err)
			}
		}
	}
	var told strings.Builder
	for _, s := range fsm.List[*fsm.Service](g.state.Read(), fsm.TableServices) {
		if strings.Contains(string(s.ID), "good") {
			fmt.Fprintln(&told, s.ID, s.Pending, len(s.Endpoints))
		}
	}
	for i := range 3 {
		fmt.Fprintln(&told, hopsOf(g.state.Read(), fmt.Sprintf("203.0.113.%d", i+1)))
	}
	return told.String()
}

// A driver whose answers are no text, or more than is kept, has unknown outcomes, and other drivers do not notice.
func TestOneDriverDoesNotStopTheOthers(t *testing.T) {
	for name, c := range map[string]struct {
		answer Answer
		reason string
	}{
		"message":  {Answer{Result: fsm.ResultFailed, Message: "dial tcp: lookup \xff: no such host"}, "lookup ?: no such host"},
		"returned": {Answer{Result: fsm.ResultSucceeded, Returned: []fsm.KV{{Key: "k", Value: "\xff"}}}, "Returned[0].Value: not UTF-8"},
		"too-much": {Answer{Result: fsm.ResultSucceeded, Returned: []fsm.KV{{Key: "k", Value: strings.Repeat("x", maxReturned)}}}, "16385 bytes, at most 16384 are kept"},
		"huge":     {Answer{Result: fsm.ResultFailed, Message: strings.Repeat("é", 1<<20)}, "éééé"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &sifting{liveGroup: newLiveGroup(t)}
				bad := &told{do: func(context.Context, fsm.Action, Request) Answer { return c.answer }}
				l := leaderOf(t, g.liveGroup, g, func(name string) (Driver, bool) {
					if name == "bad" {
						return bad, true
					}
					return &told{do: succeed}, true
				})
				led(l, func() {
					g.commit(&fsm.PutLoadBalancer{ID: "bad/b", Driver: "bad", UID: "uid-b", Info: []fsm.KV{{Key: "id", Value: "b"}}})
					time.Sleep(10 * time.Second)
					g.commit(balancer("drv/a"), bind("y", "10.0.0.2:80"))
					time.Sleep(10 * time.Second)
					if have := stateOf(g.liveGroup, "y"); have != "bound" {
						t.Errorf("y is %s", have)
					}
					b, _ := fsm.Get[*fsm.LoadBalancer](g.state.Read(), fsm.TableBalancers, "bad/b")
					if b == nil || !strings.Contains(b.Reason, c.reason) || !utf8.ValidString(b.Reason) || len(b.Reason) > 2*fsm.MaxMessage {
						t.Errorf("of the driver's own it is known %+v", b)
					}
				})
			})
		})
	}
}
