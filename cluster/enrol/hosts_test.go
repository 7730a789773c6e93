// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"strings"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/fsm"
)

// Balancing §15: a host outside the cluster gets a certificate of its own role for a token that was offered for a host; those of
// nodes are no good for it, nor the other way round. Renewals go on until the group takes it out.
// Rule: balancing §15.
func TestHostsOutsideEnrolAndAreTakenOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t)})
	alice := admin.NewClient(admin.ClientOptions{
		Endpoint: &pki.Endpoint{Source: pkitest.Open(t, w.ca.Issue(t, pki.Request{Role: pki.Operator, Name: "alice"}))}, Servers: []string{m.address},
	})
	defer alice.Close()
	offerOutside := func(token string) {
		t.Helper()
		_, err := alice.Enrol.Offer(t.Context(), &fairleadv1.OfferRequest{Node: "edge-1", TokenSha256: string(enrol.Sum(token)), TtlSeconds: 60, Outside: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	get := func(token string, outside bool) (*host, error) {
		h := w.host(t, token)
		return h, enrol.Get(t.Context(), h.files, enrol.AsStranger("edge-1", outside, h.ca, h.token, []string{m.address}, nil))
	}
	ofHost, ofNode := enrol.NewToken(), w.offer(t, m, "edge-1", time.Hour)
	offerOutside(ofHost)
	for why, c := range map[string]struct {
		token   string
		outside bool
	}{
		"write outOfCluster: true into its agent.yaml": {ofHost, false},
		"the one-time token is for a node":             {ofNode, true},
	} {
		if _, err := get(c.token, c.outside); err == nil || !strings.Contains(m.log.String(), why) {
			t.Errorf("%s: %v\n%s", why, err, m.log)
		}
	}
	h, err := get(ofHost, true)
	if err != nil {
		t.Fatal(err)
	}
	held := pkitest.Open(t, h.files)
	if id := held.Material().Identity.String(); id != "host/edge-1" {
		t.Fatalf("it has a certificate of %s", id)
	}
	if _, ok := fsm.Get[*fsm.Host](w.group.Read(), fsm.TableHosts, "edge-1"); !ok {
		t.Fatal("the group did not take it in")
	}
	peers := admin.NewPeers(&pki.Endpoint{Source: held}, nil)
	defer peers.Close()
	renew := func() error {
		again := w.host(t, "")
		err := enrol.Get(t.Context(), again.files, enrol.AsAgent("edge-1", func() []enrol.Other { return enrol.Members(peers, []string{m.address}) }))
		if err == nil {
			if id := pkitest.Open(t, again.files).Material().Identity.String(); id != "host/edge-1" {
				t.Errorf("renewed, it is %s", id)
			}
		}
		return err
	}
	if err := renew(); err != nil {
		t.Fatal(err)
	}
	if _, err := alice.Enrol.RemoveHost(t.Context(), &fairleadv1.RemoveHostRequest{Name: "edge-1"}); err != nil {
		t.Fatal(err)
	}
	if err := renew(); err == nil || !strings.Contains(err.Error(), "the group took the host out") || !strings.Contains(err.Error(), "--outside") {
		t.Errorf("renewed after it was taken out: %v", err)
	}
	if _, err := alice.Enrol.RemoveHost(t.Context(), &fairleadv1.RemoveHostRequest{Name: "edge-1"}); err == nil || !strings.Contains(err.Error(), "`fairlead get hosts`") {
		t.Errorf("taken out twice: %v", err)
	}
	if _, err := alice.Enrol.AdmitHost(t.Context(), &fairleadv1.AdmitHostRequest{Name: "Edge 1"}); err == nil || !strings.Contains(err.Error(), "not a DNS name") {
		t.Errorf("took in what nobody can be called: %v", err)
	}
	if _, err := alice.Enrol.AdmitHost(t.Context(), &fairleadv1.AdmitHostRequest{Name: "edge-1"}); err != nil {
		t.Fatal(err)
	}
	if err := renew(); err != nil {
		t.Errorf("taken in again: %v", err)
	}
	if _, err := peers.Client(m.address).Enrol.RemoveHost(t.Context(), &fairleadv1.RemoveHostRequest{Name: "edge-1"}); err == nil {
		t.Error("a host takes hosts out")
	}
}
