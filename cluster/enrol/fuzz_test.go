// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/fsm"
)

// FuzzEnrolments shows tokens and requests for certificates to a member, as a stranger: he gets a certificate with the one token, or the
// ServiceAccount's, for whom it is, and else a refusal that tells him nothing of them.
func FuzzEnrolments(f *testing.F) {
	const token = "abcdefghijklmnopqrstuvwxyz"
	w := newWorld(f)
	signer := w.ca.Authority(f)
	csr, _, err := pki.NewRequest()
	if err != nil {
		f.Fatal(err)
	}
	shown := &fairleadv1.EnrolRequest_Token{Token: token}
	account := &fairleadv1.EnrolRequest_ServiceAccountToken{ServiceAccountToken: jwt}
	for _, req := range []*fairleadv1.EnrolRequest{
		{Node: "n1", Proof: shown, Request: csr}, {Node: "n2", Proof: shown, Request: csr}, {Node: "n1", Proof: shown}, {Node: "n1", Request: csr},
		{Node: "n1", Proof: &fairleadv1.EnrolRequest_Token{Token: "x"}, Request: csr}, {Node: "n1", Proof: shown, Request: csr, Outside: true},
		{Node: "n2", Proof: account, Request: csr}, {Node: "n1", Proof: account, Request: csr}, {Node: "n2", Proof: account, Request: csr, Outside: true}, {},
	} {
		data, err := proto.Marshal(req)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	review := enrol.Review{Authenticated: true, Username: "system:serviceaccount:kube-system:fairlead-agent", Audiences: []string{enrol.Audience}, Node: "n2"}
	stranger := admin.Caller{Identity: pki.Identity{Role: admin.Nobody}, Remote: "192.0.2.1:1"}
	f.Fuzz(func(t *testing.T, data []byte) {
		var req fairleadv1.EnrolRequest
		if proto.Unmarshal(data, &req) != nil {
			return
		}
		group := grouptest.NewGroup(t) // a token is spent
		group.Apply(t, &fsm.PutEnrolment{ID: enrol.Sum(token), Node: "n1", TTL: time.Hour})
		s, err := enrol.New(enrol.Options{Member: "m1", Record: group, Proposer: group, Signer: signer, Reviewer: &reviewer{token: jwt, review: review}, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.Enrol(admin.WithCaller(t.Context(), stranger), &req)
		byToken := req.GetToken() == token && req.GetNode() == "n1"
		byReview := req.GetServiceAccountToken() == jwt && req.GetNode() == "n2"
		if err != nil {
			told := strings.ReplaceAll(err.Error(), req.GetNode(), "") // that name is his own
			if refusal := (*admin.Refusal)(nil); !errors.As(err, &refusal) || req.GetNode() != "" && hasSecret(told, token, jwt) {
				t.Errorf("%v", err)
			}
			return
		}
		if req.GetOutside() || !byToken && !byReview || len(answer.GetCertificate().GetCertificate()) == 0 {
			t.Errorf("%q got %v", data, answer)
		}
	})
}
