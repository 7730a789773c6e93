// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
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

// Who connected ends that when the member's certificate is revoked, whoever it is that connected, and says why.
func TestConnectionsToMembersEndWhenTheyAreRevoked(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	server := serve(t, pki.Endpoint{Source: pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"})), Self: belongs("g1", 1)}, pki.API)
	for _, role := range []pki.Role{pki.Member, pki.Agent, pki.Host} {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			var revoked atomic.Bool
			client := &pki.Endpoint{
				Source: pkitest.Open(t, issue(t, ca, pki.Request{Role: role, Name: "x1"})), Self: belongs("g1", 1), Dialed: &pki.Dialed{},
				Revoked: func(id pki.Identity, _ string, _ time.Time) string {
					if id.Name == "m1" && revoked.Load() {
						return "all certificates of member/m1 were revoked"
					}
					return ""
				},
			}
			conn, err := server.connect(t, client, pki.API)
			if err != nil || client.EndStale() != 0 {
				t.Fatalf("ended although all is well: %v", err)
			}
			revoked.Store(true)
			if n := client.EndStale(); n != 1 {
				t.Errorf("%d ended", n)
			}
			if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "were revoked") {
				t.Errorf("read: %v", err)
			}
			if client.EndStale() != 0 {
				t.Error("ended once more")
			}
			if _, err := server.connect(t, client, pki.API); err == nil {
				t.Error("connected anew")
			}
		})
	}
}

// Who has no certificate yet does not enrol with a revoked member either.
func TestStrangersRefuseRevokedMembers(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	files := issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"})
	server := serve(t, pki.Endpoint{Source: pkitest.Open(t, files), Self: belongs("g1", 1), Enrols: true}, pki.API)
	roots, err := pki.ReadRoots(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range []string{"", "revoked"} {
		stranger := &pki.Endpoint{Roots: roots, Revoked: func(pki.Identity, string, time.Time) string { return why }}
		if _, err := server.connect(t, stranger, pki.API); (err == nil) != (why == "") {
			t.Errorf("revoked: %q, connected: %v", why, err)
		}
	}
}
