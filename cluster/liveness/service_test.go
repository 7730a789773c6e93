// SPDX-License-Identifier: Apache-2.0

package liveness_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/liveness"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// member is a Service in virtual time, behind a real connection.
type member struct {
	service *liveness.Service
	over    liveness.Colleague // through its API
	now     time.Time
	beats   []agents.Beat
	since   time.Time
	alive   func(netip.Addr) bool
}

func (m *member) Answers(_ context.Context, addresses []netip.Addr) bool {
	return slices.ContainsFunc(addresses, m.alive)
}

func newMember(t *testing.T, commands ...fsm.Command) *member {
	t.Helper()
	start := time.Now()
	m := &member{now: start, since: start}
	group := grouptest.NewGroup(t)
	group.Apply(t, commands...)
	var err error
	m.service, err = liveness.NewService(liveness.ServiceOptions{
		Record: group.State, Prober: m, Now: func() time.Time { return m.now },
		Beats: func() ([]agents.Beat, time.Time) { return m.beats, m.since },
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(fairleadv1connect.NewLivenessServiceHandler(m.service))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	m.over = liveness.Over(fairleadv1connect.NewLivenessServiceClient(server.Client(), server.URL))
	return m
}

// says is what the member answers; that the API changes nothing of it is seen on the way.
func (m *member) says(t *testing.T, about ...fsm.NodeID) liveness.Report {
	t.Helper()
	here, err := m.service.Local().Silences(t.Context(), about)
	if err != nil {
		t.Fatal(err)
	}
	there, err := m.over.Silences(t.Context(), about)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []liveness.Report{here, there} {
		for id, s := range r.Silences {
			s.For = s.For.Truncate(time.Millisecond)
			r.Silences[id] = s
		}
	}
	if !reflect.DeepEqual(here, there) {
		t.Fatalf("locally it says %+v, over its API %+v", here, there)
	}
	return here
}

// pass lets time pass in which the process runs.
func (m *member) pass(t *testing.T, d time.Duration) {
	for ; d > 0; d -= 50 * time.Millisecond {
		m.now = m.now.Add(min(d, 50*time.Millisecond))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = m.service.Run(ctx) // notices that it runs, and ends
	}
}

func (m *member) hear(id fsm.NodeID) {
	m.beats = append(m.beats, agents.Beat{Node: id, Boot: "b1", At: m.now})
}

func registered(ids ...fsm.NodeID) (out []fsm.Command) {
	for i, id := range ids {
		out = append(out, &fsm.PutNode{ID: id, Addresses: []netip.Addr{netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)})}}, &fsm.RegisterBoot{Node: id, Boot: "b1"})
	}
	return out
}

func TestMemberListsWhoIsSilentAndWhoItIsAskedAbout(t *testing.T) {
	m := newMember(t, append(registered("n1", "n2", "n3"), &fsm.PutNode{ID: "n4"})...)
	m.hear("n1")
	m.pass(t, 200*time.Millisecond)
	if r := m.says(t); len(r.Silences) != 0 || r.Heard != 1 {
		t.Fatalf("a beat after it began it says %+v", r)
	}
	m.hear("n2")
	m.pass(t, 100*time.Millisecond)
	want := map[fsm.NodeID]liveness.Silence{
		"n1": {Boot: "b1", For: 300 * time.Millisecond}, "n3": {For: 300 * time.Millisecond}, // n4 never registered
	}
	if r := m.says(t); !reflect.DeepEqual(r.Silences, want) || r.Heard != 2 {
		t.Errorf("it says %+v", r)
	}
	want["n2"] = liveness.Silence{Boot: "b1", For: 100 * time.Millisecond}
	want["nobody"] = liveness.Silence{For: 300 * time.Millisecond}
	if r := m.says(t, "n2", "nobody"); !reflect.DeepEqual(r.Silences, want) {
		t.Errorf("asked, it says %+v", r)
	}
	m.pass(t, time.Second)
	if r := m.says(t); r.Heard != 0 {
		t.Errorf("it heard of %d a second later", r.Heard)
	}
}

// A process that was stopped, or starved, has heartbeats of that time in its sockets still.
func TestMemberThatDidNotRunWasDeaf(t *testing.T) {
	m := newMember(t, registered("n1", "n2")...)
	m.hear("n1")
	m.hear("n2")
	m.pass(t, 100*time.Millisecond)
	m.now = m.now.Add(5 * time.Second) // it is stopped, and asked before anything else
	if r := m.says(t, "n1"); r.Silences["n1"].For != 0 || r.Heard != 0 {
		t.Errorf("it says %+v of the time that it did not run", r)
	}
	m.pass(t, 400*time.Millisecond)
	if r := m.says(t); r.Silences["n1"].For != 350*time.Millisecond { // it noticed within its next step
		t.Errorf("it says %+v, 400 ms after it ran again", r)
	}
}

func TestMemberProbesNodesOfItsRecordAlone(t *testing.T) {
	m := newMember(t, append(registered("n1", "n2"), &fsm.PutNode{ID: "homeless"})...)
	m.alive = func(a netip.Addr) bool { return a == netip.MustParseAddr("192.0.2.2") }
	for name, c := range map[string]liveness.Colleague{"local": m.service.Local(), "over the API": m.over} {
		got, err := c.Probe(t.Context(), []fsm.NodeID{"n1", "n2", "homeless", "unknown"})
		if err != nil || !reflect.DeepEqual(got, map[fsm.NodeID]bool{"n1": false, "n2": true}) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestProbeOfTooManyNodesIsRefused(t *testing.T) {
	m := newMember(t)
	m.alive = func(netip.Addr) bool { return true }
	if _, err := m.over.Probe(t.Context(), make([]fsm.NodeID, liveness.MaxProbes)); err != nil {
		t.Error(err)
	}
	_, err := m.over.Probe(t.Context(), make([]fsm.NodeID, liveness.MaxProbes+1))
	if err == nil || !strings.Contains(err.Error(), "257 nodes at once") {
		t.Errorf("%v", err)
	}
}

// A probe that was cut short heard nothing because it did not wait: that is no silence.
func TestProbeCutShortSaysNothing(t *testing.T) {
	m := newMember(t, registered("n1")...)
	m.alive = func(netip.Addr) bool { return false }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := m.service.Local().Probe(ctx, []fsm.NodeID{"n1"}); err == nil {
		t.Errorf("%v", got)
	}
}

// What a member says follows from what it heard, by an account of its own.
func TestPropertyReportTellsEverySilenceAndNoOther(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		draw := func(what string) time.Duration {
			return time.Duration(rapid.IntRange(0, 20).Draw(t, what)) * 50 * time.Millisecond
		}
		listening := draw("listening")
		ids := []fsm.NodeID{"n1", "n2", "n3"}
		var beats []liveness.Beat
		var nodes []*fsm.Node
		ago, known, asked := map[fsm.NodeID]time.Duration{}, map[fsm.NodeID]bool{}, map[fsm.NodeID]bool{}
		heard := 0
		var about []fsm.NodeID
		for _, id := range ids {
			if rapid.Bool().Draw(t, "beats") {
				ago[id] = draw("ago")
				beats = append(beats, liveness.Beat{Node: id, Boot: "b", Ago: ago[id]})
				if ago[id] < 400*time.Millisecond {
					heard++
				}
			}
			if known[id] = rapid.Bool().Draw(t, "registered"); known[id] {
				nodes = append(nodes, &fsm.Node{ID: id, Boot: "b"})
			} else {
				nodes = append(nodes, &fsm.Node{ID: id})
			}
			if asked[id] = rapid.Bool().Draw(t, "asked"); asked[id] {
				about = append(about, id)
			}
		}
		r := liveness.Timing{}.NewReport(listening, beats, nodes, about)
		if r.Heard != heard {
			t.Fatalf("heard of %d, want %d", r.Heard, heard)
		}
		for _, id := range ids {
			quiet := listening
			if a, ever := ago[id]; ever {
				quiet = min(a, listening)
			}
			s, listed := r.Silences[id]
			if want := asked[id] || known[id] && quiet >= 300*time.Millisecond; listed != want {
				t.Fatalf("%s listed: %v, want %v", id, listed, want)
			}
			if _, ever := ago[id]; listed && (s.For != quiet || (s.Boot != "") != ever) {
				t.Fatalf("%s: %+v, want %s", id, s, quiet)
			}
		}
	})
}
