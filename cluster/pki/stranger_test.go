// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"path/filepath"
	"testing"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
)

func roots(t *testing.T, ca string) *x509.CertPool {
	t.Helper()
	pool, err := pki.ReadRoots(filepath.Join(ca, pki.CAFile))
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// Only who says that he wants to enrol, on the API port of a member that lets strangers in, needs no certificate.
func TestStrangersComeInToEnrolOnly(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	member := pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"}))
	stranger := &pki.Endpoint{Roots: roots(t, ca)}
	for name, c := range map[string]struct {
		port      pki.Port
		enrols    bool
		protocols []string // offered instead of those of a stranger
		want      string
	}{
		"enrols":          {pki.API, true, nil, ""},
		"nobody-lets-in":  {pki.API, false, nil, "api/no-certificate"},
		"does-not-say-so": {pki.API, true, []string{"h2", "http/1.1"}, "api/no-certificate"},
		"raft-port":       {pki.Raft, true, nil, "raft/no-common-protocol"},
		"raft-membership": {pki.Raft, true, []string{"fairlead-raft/g1/3", "fairlead-enrol"}, "raft/no-certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, pki.Endpoint{Source: member, Self: belongs("g1", 3), Enrols: c.enrols}, c.port)
			config, err := stranger.Client(pki.API, s.address)
			if err != nil {
				t.Fatal(err)
			}
			if c.protocols != nil {
				config.NextProtos = c.protocols
			}
			plain, err := net.Dial("tcp", s.address)
			if err != nil {
				t.Fatal(err)
			}
			conn := tls.Client(plain, config)
			defer func() { _ = conn.Close() }()
			err = ping(conn)
			if got := s.refused(t); (err == nil) != (c.want == "") || c.want != "" && got[c.want] != 1 {
				t.Errorf("got %v, refused %v", err, got)
			}
		})
	}
}

func TestStrangerTrustsOnlyMembersOfItsCA(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	for name, req := range map[string]pki.Request{"agent": {Role: pki.Agent, Name: "n1"}, "other-ca": {Role: pki.Member, Name: "m1"}} {
		from := ca
		if name == "other-ca" {
			from = newCA(t, pki.CAOptions{})
		}
		s := serve(t, pki.Endpoint{Source: pkitest.Open(t, issue(t, from, req)), Enrols: true}, pki.API)
		if _, err := s.connect(t, &pki.Endpoint{Roots: roots(t, ca)}, pki.API); err == nil {
			t.Errorf("%s: its token would have been shown", name)
		}
	}
}
