// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
)

// noLeases grants nothing.
type noLeases struct{}

func (noLeases) Renew(context.Context, leases.Renewal) ([]leases.Grant, error) { return nil, nil }

// FuzzAgents sends what agents of nodes and hosts may send. Whoever has the certificate of one can write any message, but its name: it is
// taken in within its bounds or refused in words, and what comes of it can be committed.
func FuzzAgents(f *testing.F) {
	revision := &fairleadv1.Revision{Epoch: 1, Index: 3}
	for kind, messages := range [][]proto.Message{
		{
			&fairleadv1.HeartbeatRequest{Node: "n1", Boot: "b1", Answer: true, Flows: &fairleadv1.FlowCount{Open: 1, AgeMs: 1 << 63, Why: "x" + strings.Repeat("é", maxWhyBytes)}},
			&fairleadv1.HeartbeatRequest{Node: "n1", Boot: "b1", Probing: revision, Sessions: &fairleadv1.SpeakerSessions{Sessions: []*fairleadv1.SpeakerSession{{Neighbour: "tor", State: "established"}}}},
			&fairleadv1.HeartbeatRequest{Node: "n1", Boot: "b1", Probes: &fairleadv1.ProbeReport{Begins: true, More: true, Services: []*fairleadv1.ServiceReport{{
				Name: "a/b", Places: []*fairleadv1.PlaceReport{{Address: []byte{10, 0, 0, 1}, Port: &fairleadv1.Port{Protocol: 6, Number: 80}, Healthy: true}},
			}}}},
		},
		{
			&fairleadv1.RenewLeasesRequest{
				Node: "n1", Boot: "b1", SentNs: 1, Held: []*fairleadv1.HeldLease{{Address: []byte{10, 0, 0, 1}, Fence: revision}},
				Links: []*fairleadv1.Link{{Name: "eth0", Up: true, Prefixes: []string{"10.0.0.0/24", "2001:db8::/64"}}},
			},
		},
		{&fairleadv1.ReportSpeakerRequest{
			Node: "n1", Boot: "b1", Speaks: true, Announced: revision, Withdrawn: revision,
			Sessions: &fairleadv1.OpenSessions{Sessions: []*fairleadv1.OpenSession{{Neighbour: "tor", Ipv4: true}}},
		}},
		{&fairleadv1.AcknowledgeRequest{Node: "n1", Boot: "b1", Revision: revision, Failed: []*fairleadv1.FailedAddress{{Address: "10.0.0.1", Why: "x"}}}},
		{&fairleadv1.SyncRequest{Node: "n1", Boot: "b1", Have: revision, Digest: make([]byte, 16), Addresses: [][]byte{{10, 0, 0, 1}}, Tunnels: true}},
	} {
		for _, m := range messages {
			data, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(kind), false, data)
			f.Add(uint8(kind), true, data)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, outside bool, data []byte) {
		caller := admin.Caller{Identity: pki.Identity{Role: pki.Agent, Name: "n1"}}
		if outside {
			caller.Identity.Role = pki.Host
		}
		g := grouptest.NewGroup(t)
		g.Apply(t, &fsm.PutNode{ID: "n1", UID: "u1", Eligible: true}, &fsm.RegisterHost{ID: "n1", Admit: true})
		s := newService(t, g)
		s.o.Leases = noLeases{}
		err := s.take(admin.WithCaller(t.Context(), caller), kind, data)
		var (
			refusal *admin.Refusal
			refused *fsm.OutcomeError
			failed  *connect.Error
		)
		if err != nil && !errors.As(err, &refusal) && !errors.As(err, &refused) && !errors.As(err, &failed) {
			t.Errorf("kind %d: %T %v", kind, err, err)
		}
		list, _ := s.Beats()
		if len(list) > 1 || len(s.beats.sessions["n1"]) > maxSessions || len(list) > 0 && list[0].Flows != nil && (len(list[0].Flows.Why) > maxWhyBytes || !utf8.ValidString(list[0].Flows.Why)) {
			t.Errorf("remembered: %+v, %v", list, s.beats.sessions)
		}
	})
}

// take hands a message to its handler, if it is one about n1.
func (s *Service) take(ctx context.Context, kind uint8, data []byte) error {
	switch kind % 5 {
	case 0:
		var m fairleadv1.HeartbeatRequest
		if !about(&m, data) {
			return nil
		}
		answer, err := s.hear(ctx, &m, nil)
		if err == nil {
			_, err = s.hear(ctx, &m, answer)
		}
		return err
	case 1:
		var m fairleadv1.RenewLeasesRequest
		if !about(&m, data) {
			return nil
		}
		_, err := s.RenewLeases(ctx, &m)
		return err
	case 2:
		var m fairleadv1.ReportSpeakerRequest
		if !about(&m, data) {
			return nil
		}
		_, err := s.ReportSpeaker(ctx, &m)
		return err
	case 3:
		var m fairleadv1.AcknowledgeRequest
		if !about(&m, data) {
			return nil
		}
		mark, err := markOf(&m)
		if err != nil {
			return nil //nolint:nilerr // it is told so
		}
		if isHost(ctx) {
			_, err = s.reports.note(mark)
			s.reports.commit(ctx)
			return err
		}
		p, err := s.marks.add(mark)
		if err != nil {
			return err
		}
		s.marks.propose(ctx, s.marks.take())
		<-p.done
		return p.err
	}
	var m fairleadv1.SyncRequest
	if !about(&m, data) {
		return nil
	}
	return s.begin(ctx, &m)
}

// begin is a stream up to the first thing that it sends.
func (s *Service) begin(ctx context.Context, m *fairleadv1.SyncRequest) error {
	enough := errors.New("enough")
	st := &stream{s: s, node: "n1", boot: fsm.BootID(m.GetBoot()), send: func(*fairleadv1.SyncResponse) error { return enough }}
	if isHost(ctx) {
		at, err := underlayOf(m)
		if err != nil {
			return nil //nolint:nilerr // it is told so
		}
		st.host = &hostFacts{st.boot, at, m.GetTunnels()}
	}
	if m.GetBoot() == "" {
		return nil
	}
	if err := st.run(ctx, m); !errors.Is(err, enough) {
		return err
	}
	return nil
}

// about reads a message as the gate lets it through.
func about(m interface {
	proto.Message
	GetNode() string
}, data []byte) bool {
	return proto.Unmarshal(data, m) == nil && m.GetNode() == "n1"
}
