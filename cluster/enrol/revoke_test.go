// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/fsm"
)

// What an operator revokes nobody gets anew, until that is taken back; the certificates from before stay bad.
func TestRevokedNamesGetNoCertificatesUntilThatIsTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t), Serves: func(name string) bool { return name == "m2" }})
	alice := admin.NewClient(admin.ClientOptions{
		Endpoint: &pki.Endpoint{Source: pkitest.Open(t, w.ca.Issue(t, pki.Request{Role: pki.Operator, Name: "alice"}))}, Servers: []string{m.address},
	})
	defer alice.Close()
	revoke := func(req *fairleadv1.RevokeRequest) error {
		_, err := alice.Enrol.Revoke(t.Context(), req)
		return err
	}
	why := enrol.Revocations{Record: w.group}.Why
	n1, now := pki.Identity{Role: pki.Agent, Name: "n1"}, time.Now()
	if why(n1, "4f1a", now) != "" {
		t.Fatal("revoked from the beginning")
	}
	if err := revoke(&fairleadv1.RevokeRequest{Of: "agent", Name: "n1", Reason: "key stolen"}); err != nil {
		t.Fatal(err)
	}
	stolen := now.Add(-pki.Backdate) // what a certificate says that was issued a moment ago
	for _, issued := range []time.Time{{}, stolen, now.Add(time.Hour)} {
		if why(n1, "4f1a", issued) == "" {
			t.Errorf("one of %v is good", issued)
		}
	}
	if why(pki.Identity{Role: pki.Host, Name: "n1"}, "4f1a", now) != "" || why(pki.Identity{Role: pki.Agent, Name: "n2"}, "4f1a", now) != "" {
		t.Error("others are revoked, too")
	}
	token := w.offer(t, m, "n1", time.Hour)
	if err := w.host(t, token).enrol(t, "n1", m); err == nil || w.offered(token).Used {
		t.Errorf("enrolled: %v", err)
	}
	if err := revoke(&fairleadv1.RevokeRequest{Of: "agent", Name: "n1", Undo: true}); err != nil {
		t.Fatal(err)
	}
	if why(n1, "4f1a", stolen) == "" {
		t.Error("the stolen one is good again")
	}
	h := w.host(t, token)
	if err := h.enrol(t, "n1", m); err != nil {
		t.Fatal(err)
	}
	// A certificate that is issued in the same second as the revocation may say so; later ones are good.
	leaf := pkitest.Open(t, h.files).Material().Certificate.Leaf
	if said := why(n1, pki.Serial(leaf), leaf.NotBefore.Add(2*time.Second)); said != "" {
		t.Errorf("the new one: %s", said)
	}
	if err := revoke(&fairleadv1.RevokeRequest{Of: "agent", Name: "n1", Undo: true, All: true}); err != nil || why(n1, "4f1a", stolen) != "" {
		t.Errorf("%v; the old one: %s", err, why(n1, "4f1a", stolen))
	}
	for of, name := range map[string]string{"agent": "N 1", "serial": "xyz", "root": "n1", "membership": "m2", "member": "m2"} {
		if err := revoke(&fairleadv1.RevokeRequest{Of: of, Name: name}); err == nil {
			t.Errorf("revoked %s %s", of, name)
		}
	}
	if err := revoke(&fairleadv1.RevokeRequest{Of: "member", Name: "m2", Force: true}); err != nil {
		t.Error(err)
	}
	if err := revoke(&fairleadv1.RevokeRequest{Of: "serial", Name: "4f1a"}); err != nil || why(n1, "4f1a", now) == "" || why(n1, "4f1b", now) != "" {
		t.Errorf("by number: %v", err)
	}
}

// Whom the record does not know any more is renewed no more.
func TestNodesThatAreGoneAreNotRenewed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t)})
	files := w.ca.Issue(t, pki.Request{Role: pki.Agent, Name: "n1"})
	peers := admin.NewPeers(&pki.Endpoint{Source: pkitest.Open(t, files)}, nil)
	defer peers.Close()
	ask := enrol.AsAgent("n1", func() []enrol.Other { return enrol.Members(peers, []string{m.address}) })
	if err := enrol.Get(t.Context(), files, ask); err != nil {
		t.Fatal(err)
	}
	w.group.Apply(t, &fsm.DeleteNode{ID: "n1"})
	if err := enrol.Get(t.Context(), files, ask); err == nil {
		t.Error("renewed")
	}
}
