// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
)

func named(role pki.Role, name string) Caller {
	return Caller{Identity: pki.Identity{Role: role, Name: name}}
}

// Whoever has a budget pays for each call that may come into the log.
func TestChangesCountInBudgets(t *testing.T) {
	t.Parallel()
	table, limited := accessTable(), budgets()
	free := []string{
		fairleadv1connect.AgentServiceHeartbeatProcedure,     // each message counts, and none comes to the log
		fairleadv1connect.AgentServiceAnnouncementsProcedure, // the agent is registered by Sync
		fairleadv1connect.RaftServiceBackupProcedure,         // it reads
	}
	for _, m := range methods(t) {
		budgeted := slices.ContainsFunc(table[m.procedure].roles, func(r pki.Role) bool { _, ok := limited[r]; return ok })
		if counts := table[m.procedure].changes > 0; counts != (budgeted && (!m.looks || m.procedure == fairleadv1connect.AgentServiceSyncProcedure) && !slices.Contains(free, m.procedure)) {
			t.Errorf("%s: counts %t", m.procedure, counts)
		}
	}
}

// Calls under way are bounded for each certificate, and those of one are no business of another.
func TestCallsUnderWayAreBoundedByCertificate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := newCallers(func() time.Time { return now })
	var leave []func()
	enter := func(caller Caller, procedure string, rule access) error {
		left, refusal := c.enter(caller, procedure, rule)
		if refusal != nil {
			return refusal
		}
		leave = append(leave, left)
		return nil
	}
	agent, most := named(pki.Agent, "n1"), budgets()[pki.Agent].Calls
	for i := range most {
		if err := enter(agent, "sync", access{}); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if err := enter(agent, "other", access{}); !errors.Is(err, Busy) {
		t.Errorf("one more: %v", err)
	}
	for _, other := range []Caller{named(pki.Agent, "n2"), named(pki.Host, "n1")} {
		if err := enter(other, "sync", access{}); err != nil {
			t.Errorf("%s: %v", other.Actor(), err)
		}
	}
	leave[0]()
	if err := enter(agent, "sync", access{}); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	viewer := named(pki.Viewer, "v")
	for i := range 3 {
		if err := enter(viewer, "plan", access{atOnce: 2}); (err != nil) != (i == 2) {
			t.Errorf("call %d of 2 at once: %v", i, err)
		}
	}
	if err := enter(viewer, "get", access{}); err != nil {
		t.Errorf("another call: %v", err)
	}
	for range 10_000 {
		if err := enter(named(pki.Member, "m1"), "propose", access{}); err != nil {
			t.Fatalf("a member: %v", err)
		}
	}
	for _, end := range leave[1:] {
		end()
	}
	now = now.Add(2 * forgetCallers)
	c.usage(viewer)
	if len(c.known) != 1 {
		t.Errorf("%d callers are remembered, of whom one asks for anything", len(c.known))
	}
}

// Changes wait for their turn, and are refused where that is far away; members' never.
func TestChangesAreBoundedByCertificate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := newCallers(func() time.Time { return now })
	agent, b := named(pki.Agent, "n1"), budgets()[pki.Agent]
	if err := c.change(t.Context(), agent, "acknowledge", b.ChangesAtOnce); err != nil {
		t.Fatal(err)
	}
	if err := c.change(t.Context(), agent, "acknowledge", b.ChangesAtOnce); !errors.Is(err, Busy) {
		t.Errorf("at once again: %v", err)
	}
	if err := c.change(t.Context(), agent, "acknowledge", 1); err != nil { // it waits for 5 ms
		t.Errorf("what its turn is near of: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.change(ended, agent, "acknowledge", 100); !errors.Is(err, context.Canceled) {
		t.Errorf("of a call that ended: %v", err)
	}
	for _, other := range []Caller{named(pki.Agent, "n2"), named(pki.Member, "m1"), named(pki.Member, "m1")} {
		if err := c.change(t.Context(), other, "acknowledge", b.ChangesAtOnce); err != nil {
			t.Errorf("%s: %v", other.Actor(), err)
		}
	}
	now = now.Add(10 * time.Second)
	if err := c.change(t.Context(), agent, "acknowledge", b.ChangesAtOnce); err != nil {
		t.Errorf("after a pause: %v", err)
	}
}

// Whoever may connect has frames to send: of no role it is forgotten, and of none it is more than members have.
func TestEveryRoleHasFrames(t *testing.T) {
	ca, from := pkitest.New(t), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 1}
	for _, role := range pki.Roles() {
		most := frameBudgets()[pki.Member]
		b := frameBudgets()[role]
		if b.Rate <= 0 || b.AtOnce < b.Rate || b.Rate > most.Rate || b.AtOnce > most.AtOnce {
			t.Errorf("%s: %+v", role, b)
		}
		shown := ca.Source(t, pki.Request{Role: role, Name: "x1"}).Material().Certificate.Leaf
		name, has := whoSends(tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown}}, from)
		if name != string(role)+"/x1" || has != b {
			t.Errorf("%s counts as %s with %+v", role, name, has)
		}
	}
	if name, has := whoSends(tls.ConnectionState{}, from); name != "192.0.2.7" || has != framesOfStrangers() {
		t.Errorf("nobody counts as %s with %+v", name, has)
	}
}
