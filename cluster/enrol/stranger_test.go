// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
)

// Without a certificate there is one call. Others are refused before their message is read, counted and logged.
func TestStrangerMayEnrolAndDoNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t)})
	roots, err := pki.ReadRoots(w.ca.Cert())
	if err != nil {
		t.Fatal(err)
	}
	client := admin.NewClient(admin.ClientOptions{Endpoint: &pki.Endpoint{Roots: roots}, Servers: []string{m.address}})
	defer client.Close()
	request, _, err := pki.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(context.Context) error{
		"renew": func(ctx context.Context) error {
			_, err := client.Enrol.Renew(ctx, &fairleadv1.RenewRequest{Node: "n1", Request: request})
			return err
		},
		"renew-without-a-name": func(ctx context.Context) error {
			_, err := client.Enrol.RenewMember(ctx, &fairleadv1.RenewMemberRequest{Request: request})
			return err
		},
		"offer": func(ctx context.Context) error {
			_, err := client.Enrol.Offer(ctx, &fairleadv1.OfferRequest{Node: "n1", TokenSha256: string(enrol.Sum("x")), TtlSeconds: 60})
			return err
		},
		"heartbeat": func(ctx context.Context) error {
			_, err := grouptest.Beat(ctx, client.Agent, &fairleadv1.HeartbeatRequest{Node: "n1"})
			return err
		},
		"heartbeat-of-nobody": func(ctx context.Context) error {
			_, err := grouptest.Beat(ctx, client.Agent, &fairleadv1.HeartbeatRequest{})
			return err
		},
		"for-an-operator": func(ctx context.Context) error { // as members hand on
			alice := admin.Caller{Identity: pki.Identity{Role: pki.Operator, Name: "alice"}}
			_, err := client.Enrol.Offer(admin.OnBehalf(ctx, "m2", alice), &fairleadv1.OfferRequest{Node: "n1", TokenSha256: string(enrol.Sum("x")), TtlSeconds: 60})
			return err
		},
	} {
		if err := call(t.Context()); !errors.Is(err, admin.Forbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e := w.offered("x"); e != nil {
		t.Error("a stranger offered a token")
	}
	if log := m.log.String(); !strings.Contains(log, "call refused") || !strings.Contains(log, "identity=none/") {
		t.Errorf("log:\n%s", log)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := 0.0
	for _, f := range families {
		if f.GetName() == "fairlead_api_refused_total" {
			for _, metric := range f.GetMetric() {
				counted += metric.GetCounter().GetValue()
			}
		}
	}
	if counted != 6 {
		t.Errorf("counted %v refused calls", counted)
	}
}
