// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// genRevoking draws what operators do to the list, of few names and numbers.
func genRevoking(t *rapid.T) fsm.Command {
	of := rapid.SampledFrom([]fsm.RevocationOf{"member", "agent", fsm.RevokedSerial, fsm.RevokedMembership}).Draw(t, "of")
	name := rapid.SampledFrom([]string{"a1", "b2"}).Draw(t, "name") // digits of a number, too
	if rapid.Bool().Draw(t, "end") {
		return &fsm.EndRevocation{Of: of, Name: name}
	}
	c := &fsm.Revoke{Of: of, Name: name}
	if of == "member" || of == "agent" {
		c.Before = rapid.SampledFrom([]int64{0, 1000}).Draw(t, "before")
	}
	return c
}

// An agent that was told the list thinks of each member's certificate what members think of it.
func TestPropertyAgentsHeedOfMembersWhatMembersDo(t *testing.T) {
	t.Parallel()
	testkit.Check(t, func(t *rapid.T) {
		g := grouptest.NewGroup(t)
		for range rapid.IntRange(0, 6).Draw(t, "commands") {
			if _, err := g.Commit(fsm.Proposal{Actor: "operator/alice", Command: genRevoking(t)}); err != nil {
				t.Fatal(err)
			}
		}
		list, err := desired.RevokedOf(desired.RevokedMessage(g.Read()))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := desired.UnmarshalRevoked(list.Marshal())
		if err != nil || !kept.Same(list) || kept.Revision != list.Revision {
			t.Fatalf("kept %+v of %+v: %v", kept, list, err)
		}
		members := enrol.Revocations{Record: g}.Why
		for _, name := range []string{"a1", "b2", "m3"} {
			for _, serial := range []string{"a1", "b2", "3"} {
				for _, issued := range []int64{999, 1000} {
					at := time.Unix(issued, 0)
					want, got := members(pki.Identity{Role: pki.Member, Name: name}, serial, at), kept.Why(name, serial, at)
					if (want == "") != (got == "") {
						t.Fatalf("%s with number %s of %d: members say %q, the agent %q", name, serial, issued, want, got)
					}
				}
			}
		}
	})
}

// A stream of heartbeats tells the list first thing, and again when it changed, not each time.
func TestHeartbeatsTellOfRevocations(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.RegisterHost{ID: "h1", Admit: true}, &fsm.Revoke{Of: "member", Name: "m9"})
	service := newService(t, g)
	api := w.Serve(t, "m1", func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(service, o...)
	})
	for role, name := range map[pki.Role]string{pki.Agent: "n1", pki.Host: "h1"} {
		stream, err := w.Client(t, role, name, api.Address).Agent.Heartbeat(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		beat := func() *fairleadv1.RevokedMembers {
			t.Helper()
			if err := stream.Send(&fairleadv1.HeartbeatRequest{Node: name, Boot: "b1", Answer: true}); err != nil {
				t.Fatal(err)
			}
			answer, err := stream.Receive()
			if err != nil {
				t.Fatal(err)
			}
			return answer.GetRevoked()
		}
		if m := beat().GetMembers(); len(m) != 1 || m[0].GetName() != "m9" {
			t.Errorf("%s is told %v", role, m)
		}
		if again := beat(); again != nil {
			t.Errorf("%s is told once more", role)
		}
		g.Apply(t, &fsm.Revoke{Of: fsm.RevokedSerial, Name: map[string]string{"n1": "4f", "h1": "5f"}[name]})
		if m := beat(); len(m.GetSerials()) == 0 || len(m.GetMembers()) != 1 {
			t.Errorf("%s is told %v", role, m)
		}
		g.Apply(t, &fsm.PutNode{ID: fsm.NodeID("n2" + name)})
		if again := beat(); again != nil {
			t.Errorf("%s is told once more, since a node came", role)
		}
	}
}
