// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/event"
)

var update = flag.Bool("update", false, "write golden files anew")

// tale is a hand-made history: events as an account hears them.
type tale struct {
	a  *account
	at time.Duration
	n  uint64
}

var hops = map[string]netip.Addr{
	"n1": netip.MustParseAddr("192.0.2.11"), "n2": netip.MustParseAddr("192.0.2.12"), "n3": netip.MustParseAddr("192.0.2.13"),
}

var (
	webAddress  = netip.MustParseAddr("203.0.113.10")
	mailAddress = netip.MustParseAddr("203.0.113.25")
)

func newTale() *tale {
	nodes := map[netip.Addr]string{}
	for name, a := range hops {
		nodes[a] = name
	}
	t := &tale{a: newAccount(accountOptions{Every: 20 * time.Millisecond, Nodes: nodes})}
	for name, a := range map[string]netip.Addr{"web": webAddress, "mail": mailAddress} {
		t.tell(event.Object{Kind: "Service", Namespace: "default", Name: name, JSON: fmt.Appendf(nil,
			`{"spec":{"ports":[{"port":80}]},"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, a)})
	}
	return t
}

func (t *tale) tell(e event.Event) {
	t.n++
	t.a.hear(event.Stamped{At: t.at, Number: t.n, Event: e})
}

// requests lets so much time pass, in which every 10 ms an address is asked, by turns of the nodes; those that are in
// fails do not answer.
func (t *tale) requests(d time.Duration, to netip.Addr, nodes []string, why string, fails ...string) {
	for i, from := 0, t.at; t.at < from+d; i++ {
		node := nodes[i%len(nodes)]
		f := event.Flow{Address: to, Port: 80, Switch: []string{"s1", "s2"}[i/len(nodes)%2], Node: node, Wanted: true, Served: true, Pod: "default/pod-" + node}
		for _, bad := range fails {
			if node == bad {
				f.Served, f.Pod, f.Why = false, "", why
			}
		}
		t.tell(f)
		t.at += 10 * time.Millisecond
	}
}

func (t *tale) forward(at string, paths map[string]event.Path, nodes ...string) {
	f := event.Forwarding{Switch: at, Prefix: netip.PrefixFrom(webAddress, 32)}
	for _, n := range nodes {
		f.NextHops = append(f.NextHops, hops[n])
	}
	for _, m := range []string{"m1", "m2"} {
		if p, ok := paths[m]; ok {
			p.Member = m
			f.Paths = append(f.Paths, p)
		}
	}
	t.tell(f)
}

func (t *tale) answer(q question, whom string) Answer {
	t.a.finish(t.at)
	a := Answer{
		ID: q.id, What: q.what, Whom: whom, Lasted: seconds(q.lasts), Watched: seconds(t.at - t.a.began), Leaders: steps(t.a.led),
		Addresses: t.a.outcomes(), Digest: "0123", Replay: "fairlead sim run --manifests DIR --what-if " + q.id,
	}
	a.Summary = a.summarize()
	return a
}

var fine = map[string]event.Path{"m1": {}, "m2": {}}

// nodeDies is a node that half of one address's requests go to, and that nothing of the other goes to.
func nodeDies() Answer {
	t := newTale()
	t.forward("s1", fine, "n1", "n2")
	t.requests(time.Second, webAddress, []string{"n1", "n2"}, "")
	t.requests(time.Second, mailAddress, []string{"n3"}, "")
	t.tell(event.FaultBegan{ID: 1, Fault: "node-death", On: []string{"n2"}})
	t.requests(600*time.Millisecond, webAddress, []string{"n1", "n2"}, "the node has no power", "n2")
	t.forward("s1", fine, "n1", "n3")
	t.requests(4*time.Second, webAddress, []string{"n1", "n3"}, "")
	t.requests(time.Second, mailAddress, []string{"n3"}, "")
	t.tell(event.FaultEnded{ID: 1})
	t.requests(3*time.Second, webAddress, []string{"n1", "n2"}, "")
	return t.answer(question{id: "node-n2-dies", what: "node n2 dies, and boots after 5 s", lasts: 5 * time.Second}, "")
}

// leaderKilled is a change of leaders that nobody notices.
func leaderKilled() Answer {
	t := newTale()
	t.forward("s1", fine, "n1")
	t.requests(time.Second, webAddress, []string{"n1"}, "")
	t.tell(event.FaultBegan{ID: 1, Fault: "kill", On: []string{"m1"}})
	t.forward("s1", map[string]event.Path{"m1": {Stale: true}, "m2": {}}, "n1")
	t.requests(900*time.Millisecond, webAddress, []string{"n1"}, "")
	t.tell(event.Leading{Process: "m2", On: true})
	t.tell(event.FaultEnded{ID: 1})
	t.forward("s1", map[string]event.Path{"m1": {MED: 1 << 30}, "m2": {}}, "n1")
	t.requests(3*time.Second, webAddress, []string{"n1"}, "")
	return t.answer(question{id: "leader-killed", what: "the leader is killed", lasts: time.Second}, "m1")
}

// lastPod is an address whose only node dies and never comes back.
func lastPod() Answer {
	t := newTale()
	t.forward("s1", fine, "n3")
	t.requests(time.Second, webAddress, []string{"n3"}, "")
	t.tell(event.FaultBegan{ID: 1, Fault: "node-death", On: []string{"n3"}})
	t.requests(3*time.Second, webAddress, []string{"n3"}, "the node has no power", "n3")
	t.tell(event.FaultEnded{ID: 1})
	t.forward("s1", nil)
	t.requests(2*time.Second, webAddress, []string{"n3"}, "the switch knows no way", "n3")
	return t.answer(question{id: "node-n3-dies", what: "node n3 dies", lasts: 3 * time.Second}, "")
}

// brokenRule is a run that a rule ended.
func brokenRule() Answer {
	a := leaderKilled()
	a.ID, a.Violation = "members-stopped", &Violation{Rule: "S8", At: 16.5, Subject: "203.0.113.10/32 at s1", Text: "it is not forwarded"}
	a.What, a.Whom, a.Replay = "all members stop for 10 s", "", "fairlead sim run --manifests DIR --what-if members-stopped"
	a.Summary = a.summarize()
	return a
}

// What people and programs read of hand-made histories. Refresh with -update, and read the difference.
func TestReportsReadAsTheyShould(t *testing.T) {
	r := Report{
		Folder: "DIR", Seed: 1, Module: "abcd", Members: []string{"m1", "m2"}, Nodes: []string{"n1", "n2", "n3"}, Switches: []string{"s1", "s2"},
		Made: []string{"two pods"}, Notes: []string{}, Unused: []string{"2 Secret (v1)"}, Unserved: []Unserved{{"default/stranger", "it has no address yet"}},
		Answers: []Answer{nodeDies(), leaderKilled(), lastPod(), brokenRule()}, Resolution: 0.02, Checks: map[string]int{"S8": 900, "L1": 3, "S4": 0}, Uncovered: "Measured in a model.",
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", text.String())
	r.Answers = r.Answers[:1]
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", string(b)+"\n")
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "report", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// Failures that are further apart than chance explains are two gaps; the longest counts, to when the last one failed.
func TestTheLongestGapCounts(t *testing.T) {
	var g gaps
	every := 10 * time.Millisecond
	for _, ms := range []int{1000, 1200, 1600, 2300, 2310, 5000} {
		g.fail(time.Duration(ms)*time.Millisecond, every)
	}
	if want := (gap{time.Second, 1610 * time.Millisecond, 3}); g.longest != want {
		t.Fatalf("%+v", g.longest)
	}
}

func TestSentencesSayWhoServes(t *testing.T) {
	for want, shares := range map[string][]Share{
		"":                                    nil,
		"n1 serves it alone":                  {{"n1", 1}},
		"n1 and n3 serve it half each":        {{"n3", .52}, {"n1", .48}},
		"a, b and c serve it a third each":    {{"a", .33}, {"b", .34}, {"c", .33}},
		"it is served by n1 80 % and n2 20 %": {{"n1", .8}, {"n2", .2}},
	} {
		if got := serve(shares); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What nobody served before the mishap is not told to have suffered from it.
func TestAddressesThatWereNeverServedSufferNothing(t *testing.T) {
	x := newTale()
	x.requests(time.Second, webAddress, []string{"n1"}, "")
	x.requests(time.Second, mailAddress, []string{"n2"}, "not steered", "n2")
	x.tell(event.FaultBegan{ID: 1, Fault: "kill"})
	x.requests(time.Second, webAddress, []string{"n1"}, "")
	x.requests(time.Second, mailAddress, []string{"n2"}, "not steered", "n2")
	x.tell(event.FaultEnded{ID: 1})
	a := x.answer(question{id: "leader-killed", what: "the leader is killed"}, "")
	if want := "If the leader is killed: 203.0.113.10 (default/web) notices nothing: 100 requests, none lost."; a.Summary != want {
		t.Errorf("%q", a.Summary)
	}
	if a.Brief() != "no request lost" || a.Addresses[0].Early != 100 || !a.Addresses[0].Unserved {
		t.Errorf("%q, %+v", a.Brief(), a.Addresses[0])
	}
}

// An address goes from a prefix that stands for it to one of its own, and back, without being without a way for a moment.
func TestWaysAreThoseOfTheLongestPrefix(t *testing.T) {
	x := newTale()
	block := func(nodes ...string) {
		f := event.Forwarding{Switch: "s1", Prefix: netip.PrefixFrom(webAddress, 30).Masked()}
		for _, n := range nodes {
			f.NextHops = append(f.NextHops, hops[n])
			f.Paths = append(f.Paths, event.Path{Member: "m1", NextHop: hops[n]})
		}
		x.tell(f)
	}
	alone := map[string]event.Path{"m1": {}}
	block("n1", "n2")
	x.requests(time.Second, webAddress, []string{"n1"}, "")
	x.tell(event.FaultBegan{ID: 1, Fault: "node-death"})
	block()
	x.forward("s1", alone, "n1")
	x.requests(time.Second, webAddress, []string{"n1"}, "")
	block("n1", "n2")
	x.requests(time.Second, webAddress, []string{"n1"}, "")
	x.forward("s1", nil)
	x.tell(event.FaultEnded{ID: 1})
	x.requests(time.Second, webAddress, []string{"n1"}, "")
	var got []string
	for _, s := range x.answer(question{id: "node-n2-dies", what: "node n2 dies"}, "").Addresses[0].Route {
		got = append(got, fmt.Sprint(s))
	}
	if want := []string{"{0 s1 forwards to n2 no more}", "{2 s1 forwards to n2 as well}"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
