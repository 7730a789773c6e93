// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/cluster/probes"
	"fairlead.io/fairlead/fsm"
)

// maxBeating bounds the nodes whose heartbeats are remembered.
const maxBeating = 65_536

// maxWhyBytes bounds what is remembered of why flows could not be counted.
const maxWhyBytes = 256

// beats remembers when each node was last heard of. It is this member's own observation and never in the log.
type beats struct {
	now   func() time.Time
	since time.Time

	mu   sync.Mutex
	last map[fsm.NodeID]Beat
	// sessions are the own BGP sessions of nodes that have some, by neighbour.
	sessions map[fsm.NodeID]map[fsm.PeerName]string
	// probes are what nodes think of addresses that they probe, coming reports whose last piece has not come.
	probes map[fsm.NodeID]probes.Said
	coming map[fsm.NodeID]probes.Report
	half   map[fsm.NodeID]int // bytes of coming, as they are in held
	held   int                // bytes of probes and coming
	// streams counts the streams of heartbeats that nodes have open.
	streams map[fsm.NodeID]int
}

// Beat is the newest heartbeat of a node. At has a monotonic reading.
type Beat struct {
	Node fsm.NodeID
	Boot fsm.BootID
	At   time.Time
	// Flows is what the node counted last; nil if it was not asked to, or did not yet.
	Flows *Flows
}

// Flows is what a node counted of connections that come in by it: see fairleadv1.FlowCount.
type Flows struct {
	Open, Busy uint64
	At         time.Time // when they were counted
	Why        string    // why they could not be
}

func newBeats(now func() time.Time) *beats {
	return &beats{now: now, since: now(), last: map[fsm.NodeID]Beat{}, sessions: map[fsm.NodeID]map[fsm.PeerName]string{},
		probes: map[fsm.NodeID]probes.Said{}, coming: map[fsm.NodeID]probes.Report{},
		half: map[fsm.NodeID]int{}, streams: map[fsm.NodeID]int{}}
}

// Beats lists the newest heartbeat of each node that was ever heard of, by name, and since when this member
// listens: a node that is not listed has been silent at least so long.
func (s *Service) Beats() (list []Beat, since time.Time) {
	s.beats.mu.Lock()
	defer s.beats.mu.Unlock()
	for _, b := range s.beats.last {
		list = append(list, b)
	}
	slices.SortStableFunc(list, func(a, b Beat) int { return cmp.Compare(a.Node, b.Node) })
	return list, s.beats.since
}

// Flows is what a node counted of its flows and when, by its newest heartbeat if that is no older than within; nil if it told
// nothing.
func (s *Service) Flows(node fsm.NodeID, within time.Duration) *Flows {
	s.beats.mu.Lock()
	defer s.beats.mu.Unlock()
	b, known := s.beats.last[node]
	if !known || s.o.Now().Sub(b.At) > within {
		return nil
	}
	return b.Flows
}

// beatStream is what a node sends heartbeats on, and gets answers.
type beatStream = connect.BidiStream[fairleadv1.HeartbeatRequest, fairleadv1.HeartbeatResponse]

// Heartbeat implements fairleadv1connect.AgentServiceHandler.
func (s *Service) Heartbeat(ctx context.Context, stream *beatStream) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	came, ended := make(chan *fairleadv1.HeartbeatRequest), make(chan error, 1)
	// Receiving does not end with ctx, only with the stream, and that ends when this returns. Nothing must be sent any
	// more then, or net/http panics: so this goroutine sends, and the other one does not.
	go func() { ended <- receive(ctx, stream, came) }()
	var said *fairleadv1.HeartbeatResponse
	for first := true; ; {
		select {
		case req := <-came:
			if node := fsm.NodeID(req.GetNode()); first && !isHost(ctx) {
				s.beats.begin(node, req.GetProbes() != nil)
				defer s.beats.end(node)
			}
			first = false
			next, err := s.hear(ctx, req, said)
			if err == nil && next != nil {
				err = answer(stream, next, said)
				said = next
			}
			if err != nil {
				return err
			}
		case err := <-ended:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// rememberSaid is how long it is remembered what a node said in heartbeats, once it has no stream of them any more. A new stream tells all of it
// anew, and nobody goes by what is so old.
const rememberSaid = 30 * time.Second

// begin is for a new stream of heartbeats; one that begins without a word of probes has none to tell of.
func (l *beats) begin(node fsm.NodeID, probes bool) {
	l.mu.Lock()
	l.streams[node]++
	l.mu.Unlock()
	if !probes {
		l.forgetProbes(node)
	}
}

// end is for a stream that ended. Half a report will not be completed; what else the node said is forgotten a while later.
func (l *beats) end(node fsm.NodeID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.streams[node]--; l.streams[node] <= 0 {
		delete(l.streams, node)
		l.setComing(node, nil)
	}
}

// forgetSilent forgets what nodes said whose streams have ended a while ago, but when they were heard of.
func (l *beats) forgetSilent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for node, b := range l.last {
		if l.streams[node] > 0 || l.now().Sub(b.At) < rememberSaid {
			continue
		}
		delete(l.sessions, node)
		l.setProbes(node, probes.Said{})
		if b.Flows != nil {
			b.Flows = nil
			l.last[node] = b
		}
	}
}

// receive hands heartbeats on until the agent sends no more, or ctx ends.
func receive(ctx context.Context, stream *beatStream, to chan<- *fairleadv1.HeartbeatRequest) error {
	for {
		req, err := stream.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		select {
		case to <- req:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// hear takes in a heartbeat, and gives the answer; nil where it would tell nothing that was not said before.
func (s *Service) hear(ctx context.Context, req *fairleadv1.HeartbeatRequest, said *fairleadv1.HeartbeatResponse) (*fairleadv1.HeartbeatResponse, error) {
	if isHost(ctx) {
		return s.hearHost(req, said)
	}
	if err := s.beat(req); err != nil {
		return nil, err
	}
	view := s.o.Record.Read()
	n, known := fsm.Get[*fsm.Node](view, fsm.TableNodes, req.GetNode())
	answer := &fairleadv1.HeartbeatResponse{
		Applied: desired.RevisionMessage(view.Revision()), InQuorum: s.standing.good(),
		Leases: s.o.Leases != nil && leases.Asked(view), CountFlows: view.Drained(fsm.DrainNode, req.GetNode()),
		Speaks: known && n.Speaking.Speaks, Revoked: s.revoked.of(view),
	}
	if !req.GetAnswer() && said != nil && said.GetInQuorum() == answer.GetInQuorum() && said.GetLeases() == answer.GetLeases() &&
		said.GetCountFlows() == answer.GetCountFlows() && said.GetSpeaks() == answer.GetSpeaks() && said.GetRevoked() == answer.GetRevoked() {
		return nil, nil
	}
	return answer, nil
}

// beat takes note of one heartbeat.
func (s *Service) beat(req *fairleadv1.HeartbeatRequest) error {
	b := Beat{Node: fsm.NodeID(req.GetNode()), Boot: fsm.BootID(req.GetBoot()), At: s.o.Now()}
	if b.Node == "" || b.Boot == "" {
		return &admin.Refusal{Code: admin.Invalid, What: "heartbeat", Why: "node or boot is missing", Remedy: "name both"}
	}
	if c := req.GetFlows(); c != nil {
		age := time.Duration(min(c.GetAgeMs(), uint64(time.Hour/time.Millisecond))) * time.Millisecond
		why := c.GetWhy()
		b.Flows = &Flows{Open: c.GetOpen(), Busy: c.GetBusy(), At: b.At.Add(-age), Why: fsm.Text(why, maxWhyBytes)}
	}
	sessions, err := sessionsOf(req.GetSessions())
	if err != nil {
		return &admin.Refusal{Code: admin.Invalid, What: "heartbeat", Why: err.Error(), Remedy: "use an agent of this release"}
	}
	if err := s.beats.addProbes(b.Node, req.GetProbes(), desired.RevisionOf(req.GetProbing())); err != nil {
		return &admin.Refusal{Code: admin.Invalid, What: "heartbeat", Why: err.Error(), Remedy: "use an agent of this release"}
	}
	if !s.beats.add(b, sessions) {
		return &admin.Refusal{Code: admin.Busy, What: "heartbeat", Why: fmt.Sprintf("%d nodes beat already", maxBeating), Remedy: "run a group for fewer nodes"}
	}
	return nil
}

// maxSessions bounds the BGP sessions of one node that are remembered.
const maxSessions = 64

// maxSessionText bounds the name of a neighbour and the state of its session, bytes.
const maxSessionText = 253

// sessionsOf reads the BGP sessions of a node, nil if they are as they were.
func sessionsOf(m *fairleadv1.SpeakerSessions) (map[fsm.PeerName]string, error) {
	if m == nil {
		return nil, nil
	}
	if n := len(m.GetSessions()); n > maxSessions {
		return nil, fmt.Errorf("%d sessions, at most %d make sense", n, maxSessions)
	}
	out := map[fsm.PeerName]string{}
	for _, session := range m.GetSessions() {
		if n := max(len(session.GetNeighbour()), len(session.GetState())); n > maxSessionText {
			return nil, fmt.Errorf("a session with a name or a state of %d bytes, at most %d make sense", n, maxSessionText)
		}
		out[fsm.PeerName(session.GetNeighbour())] = session.GetState()
	}
	return out, nil
}

// SpeakerSessions gives the BGP sessions that nodes have themselves with a peer, as they said last, by node.
func (s *Service) SpeakerSessions(peer fsm.PeerName) map[fsm.NodeID]string {
	out := map[fsm.NodeID]string{}
	s.beats.mu.Lock()
	defer s.beats.mu.Unlock()
	for node, sessions := range s.beats.sessions {
		if state, ok := sessions[peer]; ok {
			out[node] = state
		}
	}
	return out
}

// add takes note of a beat; sessions are nil if they are as they were. It tells whether there was room.
func (l *beats) add(b Beat, sessions map[fsm.PeerName]string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.last[b.Node]; !known && len(l.last) >= maxBeating {
		return false
	}
	l.last[b.Node] = b
	if sessions != nil {
		l.sessions[b.Node] = sessions
	}
	return true
}
