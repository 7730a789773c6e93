// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
)

// A connection to a member ends with that member's certificate, although the member has another one by then.
func TestConnectionsEndWithTheCertificateOfTheMember(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	member := pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"}))
	s := serve(t, pki.Endpoint{Source: member, Self: belongs("g1", 1)}, pki.API)
	source := pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Agent, Name: "n1", TTL: 48 * time.Hour}))
	almost := func() time.Time { return member.Material().Certificate.Leaf.NotAfter.Add(-10 * time.Millisecond) }
	conn, _ := s.connect(t, &pki.Endpoint{Source: source, Now: almost}, pki.API) // it may be over already, which is what is wanted
	if conn == nil {
		t.Fatal("not connected")
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("it is open")
	}
	before, err := s.connect(t, &pki.Endpoint{Source: source}, pki.API)
	if err != nil {
		t.Fatal(err)
	}
	if err := ping(before); err != nil {
		t.Errorf("ended early: %v", err)
	}
}
