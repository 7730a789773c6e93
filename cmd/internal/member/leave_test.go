// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/fsm"
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
	grouptest.Eventually(t, "it leads and is known", func() bool { return m.Leads() && server() != "" })
	self := func() (string, uint64) {
		group, epoch, _ := m.Record().Identity()
		return string(group), uint64(epoch)
	}
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
