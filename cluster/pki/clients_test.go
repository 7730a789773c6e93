// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
)

// An open connection ends as soon as a handshake would be refused, on either port, and only then.
func TestConnectionsEndWithWhatTheyWereAdmittedBy(t *testing.T) {
	t.Parallel()
	for _, port := range []pki.Port{pki.API, pki.Raft} {
		for name, end := range map[string]struct {
			reason string
			now    func(*stale)
		}{
			"expired":    {"expired", func(s *stale) { s.later.Store(int64(25 * time.Hour)) }},
			"revoked":    {"revoked", func(s *stale) { s.revoked.Store(true) }},
			"ca-removed": {"unknown-ca", func(s *stale) { s.rotate(t) }},
			"nothing":    {"", func(s *stale) { s.later.Store(int64(time.Hour)) }},
		} {
			t.Run(string(port)+"-"+name, func(t *testing.T) {
				t.Parallel()
				s := &stale{ca: newCA(t, pki.CAOptions{})}
				s.files = issue(t, s.ca, pki.Request{Role: pki.Member, Name: "m1"})
				member := pkitest.Open(t, s.files)
				server := serve(t, pki.Endpoint{
					Source: member, Self: belongs("g1", 1), Clients: &pki.Clients{},
					Now: func() time.Time { return time.Now().Add(time.Duration(s.later.Load())) },
					Revoked: func(id pki.Identity, _ string, _ time.Time) string {
						if s.revoked.Load() && id.Name == "m2" {
							return "revoked by operator/alice"
						}
						return ""
					},
				}, port)
				connect := func(name string) (io.ReadWriteCloser, error) {
					c := &pki.Endpoint{Source: pkitest.Open(t, issue(t, s.ca, pki.Request{Role: pki.Member, Name: name})), Self: belongs("g1", 1)}
					return server.connect(t, c, port)
				}
				conn, err := connect("m2")
				if err != nil || server.endpoint.EndStale() != 0 {
					t.Fatalf("ended although all is well: %v", err)
				}
				end.now(s)
				ended := server.endpoint.EndStale()
				if (ended == 1) != (end.reason != "") || (server.refused(t)[string(port)+"/"+end.reason] == 1) != (end.reason != "") {
					t.Fatalf("%d ended, refused %v\n%s", ended, server.refused(t), server.log)
				}
				_, err = conn.Write([]byte{1})
				if err == nil {
					_, err = io.ReadFull(conn, make([]byte, 1))
				}
				if (err == nil) != (end.reason == "") {
					t.Errorf("bytes afterwards: %v", err)
				}
				if server.endpoint.EndStale() != 0 {
					t.Error("ended once more")
				}
				if _, err := connect("m2"); (err == nil) != (end.reason == "") && end.reason != "expired" { // a new certificate begins later
					t.Errorf("connected anew: %v", err)
				}
			})
		}
	}
}

// stale is what may change under an open connection.
type stale struct {
	ca      string
	files   pki.Files
	later   atomic.Int64
	revoked atomic.Bool
}

// rotate has the server trust another CA only.
func (s *stale) rotate(t *testing.T) {
	t.Helper()
	bundle, err := os.ReadFile(filepath.Join(newCA(t, pki.CAOptions{}), pki.CAFile))
	if err == nil {
		err = os.WriteFile(s.files.CA, bundle, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Who connects refuses a member whose certificate was revoked, too.
func TestNobodyConnectsToARevokedMember(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	server := serve(t, pki.Endpoint{Source: pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"})), Self: belongs("g1", 1)}, pki.API)
	client := &pki.Endpoint{
		Source: pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m2"})), Self: belongs("g1", 1),
		Revoked: func(id pki.Identity, _ string, _ time.Time) string {
			return map[string]string{"m1": "revoked"}[id.Name]
		},
	}
	if _, err := server.connect(t, client, pki.API); err == nil {
		t.Error("connected")
	}
}
