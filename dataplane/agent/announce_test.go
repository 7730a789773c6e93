// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"maps"
	"net/netip"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// shares has every node announce the record's revision.
type shares struct{}

func (shares) Tables() []fsm.Table { return []fsm.Table{fsm.TableRoutes, fsm.TableNodes} }

func (shares) Of(v *fsm.View, _ fsm.NodeID, have uint64) (*fairleadv1.AnnouncementsResponse, uint64) {
	if seq := uint64(v.Applied()); seq != have {
		return &fairleadv1.AnnouncementsResponse{Revision: desired.RevisionMessage(v.Revision())}, seq
	}
	return nil, have
}

// speaker announces everything as soon as it is told.
type speaker struct {
	mu       sync.Mutex
	marks    agent.SpeakerMarks
	news     chan struct{}
	sessions map[string]string
}

func (s *speaker) Have() fsm.Revision { return s.Marks().Announced }

func (s *speaker) Tell(m *fairleadv1.AnnouncementsResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := desired.RevisionOf(m.GetRevision())
	s.marks.Announced, s.marks.Withdrawn = at, at
	select {
	case s.news <- struct{}{}:
	default:
	}
	return nil
}

// open has other sessions count as open.
func (s *speaker) open(sessions fsm.Sessions) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks.Sessions = sessions
	select {
	case s.news <- struct{}{}:
	default:
	}
}

func (s *speaker) Marks() agent.SpeakerMarks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.marks
}

func (s *speaker) News() <-chan struct{} { return s.news }

func (s *speaker) Sessions() (map[string]string, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions, uint64(1 + len(s.sessions))
}

func speaking(g *grouptest.Group, id string) fsm.Speaking {
	n, ok := fsm.Get[*fsm.Node](g.Read(), fsm.TableNodes, id)
	if !ok {
		return fsm.Speaking{}
	}
	return n.Speaking
}

// The record has it that a node speaks before the node is told anything, and learns what somebody waits for: that a withdrawn
// hop is off the switches. Heartbeats tell every member of the sessions.
func TestSpeakersAreToldOnceTheGroupKnowsOfThem(t *testing.T) {
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	m1, m2 := newSpeaking(t, w, "m1", g, nil, shares{}), newSpeaking(t, w, "m2", g, nil, shares{})
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	routed(t, g, "203.0.113.1")
	s := &speaker{news: make(chan struct{}, 1), sessions: map[string]string{"tor": "established"}}
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m1.api.Address, m2.api.Address}, speaker: s})
	testkit.Until(t, "the speaker is told", func() bool { return !s.Marks().Equal(agent.SpeakerMarks{}) })
	if !speaking(g, "n1").Speaks {
		t.Error("the record did not know it then")
	}
	testkit.Until(t, "it is in touch", func() bool { silence, ever := n.Silence(); return ever && silence < time.Second })
	for _, m := range []*member{m1, m2} {
		testkit.Until(t, "the member knows the session", func() bool {
			return maps.Equal(m.service.SpeakerSessions("tor"), map[fsm.NodeID]string{"n1": "established"})
		})
	}
	g.Apply(t, &fsm.SetRoute{Prefix: fsm.HostPrefix(netip.MustParseAddr("203.0.113.1"))})
	since := g.Read().Revision()
	testkit.Until(t, "the withdrawal is reported", func() bool { return !speaking(g, "n1").Withdrawn.Before(since) })
	quiet := g.Read().Revision()
	g.Apply(t, &fsm.PutNode{ID: "n2"}) // everybody is told anew, and nobody waits for anything
	testkit.Until(t, "the speaker is told again", func() bool { return quiet.Before(s.Marks().Withdrawn) })
	time.Sleep(50 * time.Millisecond) // long enough for a report that there must not be
	if have := speaking(g, "n1").Withdrawn; quiet.Before(have) {
		t.Errorf("a mark that nobody waits for was committed: %s", have)
	}
	if speaking(g, "n1").Sessions.Told {
		t.Error("the record was told of sessions that are not known yet")
	}
	for _, open := range []fsm.Sessions{{Told: true, Open: []fsm.Reach{{Peer: "tor", IPv4: true}}}, {Told: true}} {
		s.open(open)
		testkit.Until(t, "the record has the sessions", func() bool { return speaking(g, "n1").Sessions.Equal(open) })
	}
}

// A node that announced itself once, and does no more, is waited for until it has said so; it says so once switches cannot hold
// anything of it, and nobody asks one that never did.
func TestNodesThatSpeakNoMoreSayIt(t *testing.T) {
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	m1 := newMember(t, w, "m1", g)
	g.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.PutNode{ID: "n2"}, &fsm.RegisterBoot{Node: "n1", Boot: "b1"}, &fsm.RegisterBoot{Node: "n2", Boot: "b1"})
	g.Apply(t, &fsm.ReportSpeakers{Marks: []fsm.SpeakerMark{{Node: "n1", Boot: "b1", Speaks: true}}})
	done := make(chan string, 2)
	began := time.Now()
	const after = 200 * time.Millisecond
	for _, id := range []string{"n2", "n1"} {
		startNode(t, w, nodeOptions{
			name: id, boot: "b1", seeds: []string{m1.api.Address},
			retire: &agent.Retirement{After: after, Done: func() { done <- id }},
		})
	}
	if id := <-done; id != "n1" || time.Since(began) < after {
		t.Errorf("%s said so after %v", id, time.Since(began))
	}
	if speaking(g, "n1").Speaks {
		t.Error("the record has it that it speaks still")
	}
	if len(done) > 0 {
		t.Errorf("%s never spoke", <-done)
	}
}
