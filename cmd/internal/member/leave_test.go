// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// A removed server that says that no switch holds its paths is forgotten. Nobody says so for another member, and nobody
// who still belongs.
func TestWhoTookLeaveIsForgotten(t *testing.T) {
	t.Parallel()
	w := &wire{apis: map[string]http.Handler{}}
	m, err := member.Open(alone(filepath.Join(t.TempDir(), "m1")), "test", w.member(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	running(t, "member", m.Run)
	server := func() string {
		for _, s := range fsm.List[*fsm.Member](m.Record().Read(), fsm.TableMembers) {
			return string(s.Server)
		}
		return ""
	}
	testkit.Until(t, "it leads and is known", func() bool { return m.Leads() && server() != "" })
	self := pki.Naming(func() (string, uint64) {
		group, epoch, _ := m.Record().Identity()
		return string(group), uint64(epoch)
	})
	as := func(name string) *admin.Client { return w.client("m1:7443", caller(pki.Member, name, self)) }
	leave := func(caller, name, id string) error {
		_, err := as(caller).Join.Leave(t.Context(), &fairleadv1.LeaveRequest{Name: name, ServerId: id})
		return err
	}
	if err := leave("m2", "m1", server()); !errors.Is(err, admin.Forbidden) {
		t.Errorf("m2 lets m1 leave: %v", err)
	}
	if err := leave("m2", "m2", server()); !errors.Is(err, admin.Forbidden) {
		t.Errorf("m2 lets a server of m1 leave: %v", err)
	}
	if err := leave("m1", "m1", server()); !errors.Is(err, admin.Invalid) {
		t.Errorf("a server leaves that belongs: %v", err)
	}
	if err := leave("m1", "m1", "m1-former"); err != nil {
		t.Errorf("a server that nobody knows leaves: %v", err)
	}
}

// A folder of a server that was removed is never used again: it would announce what it announced last.
func TestARemovedServerDoesNotStart(t *testing.T) {
	t.Parallel()
	w, c := &wire{apis: map[string]http.Handler{}}, alone(filepath.Join(t.TempDir(), "m1"))
	edges := w.member()
	folder, err := edges.Folder(c.DataDir, c.Name)
	if err == nil {
		err = errors.Join(folder.SetRemoved(true), folder.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := member.Open(c, "test", edges, quiet); !errors.Is(err, cluster.ErrRemoved) {
		t.Fatalf("opened: %v", err)
	}
}

// A server that is removed tells the group that it has left, also one that never spoke BGP.
func TestARemovedServerTakesLeave(t *testing.T) {
	t.Parallel()
	w, dir := &wire{apis: map[string]http.Handler{}}, t.TempDir()
	var members []config.Member
	for _, name := range []string{"m1", "m2"} {
		members = append(members, config.Member{Name: name, API: name + ":7443", Raft: name + ":7444"})
	}
	open := func(c config.Member) *member.Member {
		m, err := member.Open(config.Controller{
			Name: c.Name, DataDir: filepath.Join(dir, c.Name), BootstrapToken: "t",
			Advertise: config.Advertise{API: c.API, Raft: c.Raft}, Members: members,
		}, "test", w.member(), quiet)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	both := map[string]*member.Member{"m1": open(members[0]), "m2": open(members[1])}
	ended := map[string]chan error{}
	for name, m := range both {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		ended[name] = done
		go func() { done <- m.Run(ctx) }()
		t.Cleanup(cancel)
	}
	known := func(m *member.Member) int { return len(fsm.List[*fsm.Member](m.Record().Read(), fsm.TableMembers)) }
	leader, other := "m1", "m2"
	testkit.Until(t, "both are known", func() bool {
		if both["m2"].Leads() {
			leader, other = "m2", "m1"
		}
		return both[leader].Leads() && known(both[leader]) == 2
	})
	self := pki.Naming(func() (string, uint64) {
		group, epoch, _ := both[leader].Record().Identity()
		return string(group), uint64(epoch)
	})
	whoAnswers := func() string {
		status, err := w.client(other+":7443", caller(pki.Operator, "alice", self)).Raft.Status(t.Context(), &fairleadv1.StatusRequest{Local: true})
		if err != nil {
			return ""
		}
		return status.GetAnsweredBy()
	}
	former := whoAnswers()
	if former == "" {
		t.Fatal("the other one does not answer")
	}
	testkit.Until(t, "the other one is removed", func() bool {
		_, err := w.client(leader+":7443", caller(pki.Operator, "alice", self)).Raft.Remove(t.Context(), &fairleadv1.RemoveRequest{Server: other, Force: true})
		return err == nil
	})
	select {
	case err := <-ended[other]:
		if !errors.Is(err, cluster.ErrRemoved) {
			t.Fatalf("it ended with %v", err)
		}
	case <-time.After(grouptest.Patience):
		t.Fatal("it does not end")
	}
	testkit.Until(t, "it is forgotten", func() bool { return known(both[leader]) == 1 })

	// Its machine comes back with an empty disk, as a new server: it is none of the group until an operator adds it.
	i := slices.IndexFunc(members, func(m config.Member) bool { return m.Name == other })
	if err := os.RemoveAll(filepath.Join(dir, other)); err != nil {
		t.Fatal(err)
	}
	again := open(members[i])
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- again.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	operator := w.client(leader+":7443", caller(pki.Operator, "alice", self))
	id := ""
	testkit.Until(t, "the new server to answer in the place of the former one", func() bool {
		id = whoAnswers()
		return id != "" && id != former
	})
	asMember := w.client(leader+":7443", caller(pki.Member, other, self))
	join := &fairleadv1.JoinRequest{Name: other, ServerId: id, Address: members[i].Raft, ApiAddress: members[i].API, Format: fsm.NewestFormat}
	if _, err := asMember.Join.Join(t.Context(), join); !errors.Is(err, admin.NotReady) || !strings.Contains(err.Error(), "`fairlead raft add "+id) {
		t.Fatalf("it asks to join: %v", err)
	}
	if _, err := asMember.Record.CheckLeader(t.Context(), &fairleadv1.CheckLeaderRequest{}); !errors.Is(err, admin.Forbidden) {
		t.Errorf("it asks as a member: %v", err)
	}
	testkit.Until(t, "it is added", func() bool {
		_, err := operator.Raft.Add(t.Context(), &fairleadv1.AddRequest{Name: other, ServerId: id, Address: members[i].Raft, ApiAddress: members[i].API})
		return err == nil
	})
	if _, err := asMember.Join.Join(t.Context(), join); err != nil {
		t.Errorf("it belongs, and asks again: %v", err)
	}
	testkit.Until(t, "it is known again", func() bool { return known(both[leader]) == 2 })
	if n := fsm.List[*fsm.Revocation](both[leader].Record().Read(), fsm.TableRevocations); len(n) != 0 {
		t.Errorf("still revoked: %+v", n[0])
	}
}
