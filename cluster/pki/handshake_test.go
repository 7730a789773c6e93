// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/testkit"
)

// The certificate, the role, the group and the epoch each can shut a port, and the server says which did.
func TestHandshakeMatrix(t *testing.T) {
	t.Parallel()
	ca, foreign := newCA(t, pki.CAOptions{}), newCA(t, pki.CAOptions{})
	caCert := filepath.Join(ca, pki.CAFile)
	certs := map[string]pki.Files{
		"member":   issue(t, ca, pki.Request{Role: pki.Member, Name: "m2"}),
		"agent":    issue(t, ca, pki.Request{Role: pki.Agent, Name: "n1"}),
		"operator": issue(t, ca, pki.Request{Role: pki.Operator, Name: "alice"}),
		"viewer":   issue(t, ca, pki.Request{Role: pki.Viewer, Name: "bob"}),
		"expired":  issue(t, ca, pki.Request{Role: pki.Member, Name: "m2", TTL: time.Hour, Now: func() time.Time { return time.Now().Add(-2 * time.Hour) }}),
		"future":   issue(t, ca, pki.Request{Role: pki.Member, Name: "m2", Now: func() time.Time { return time.Now().Add(time.Hour) }}),
		"foreign":  issue(t, foreign, pki.Request{Role: pki.Member, Name: "m2"}),
	}
	for name, files := range certs { // all trust the server, so that the server is the one who refuses
		files.CA = caCert
		certs[name] = files
	}
	member := pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"}))
	for _, test := range []struct {
		name, cert string
		port       pki.Port
		ours       pki.Self
		theirs     pki.Self
		orNewer    bool
		want       string // empty: connected; else the counted reason
	}{
		{"raft-member", "member", pki.Raft, belongs("g1", 3), belongs("g1", 3), false, ""},
		{"raft-agent", "agent", pki.Raft, belongs("g1", 3), belongs("g1", 3), false, "raft/wrong-role"},
		{"raft-operator", "operator", pki.Raft, belongs("g1", 3), belongs("g1", 3), false, "raft/wrong-role"},
		{"raft-viewer", "viewer", pki.Raft, belongs("g1", 3), belongs("g1", 3), false, "raft/wrong-role"},
		{"raft-expired", "expired", pki.Raft, belongs("g1", 3), belongs("g1", 3), false, "raft/expired"},
		{"raft-future", "future", pki.Raft, belongs("g1", 3), belongs("g1", 3), false, "raft/expired"},
		{"raft-foreign", "foreign", pki.Raft, belongs("g1", 3), belongs("g1", 3), false, "raft/unknown-ca"},
		{"raft-other-group", "member", pki.Raft, belongs("g1", 3), belongs("g2", 3), false, "raft/other-group"},
		{"raft-older", "member", pki.Raft, belongs("g1", 3), belongs("g1", 2), false, "raft/peer-outdated"},
		{"raft-newer", "member", pki.Raft, belongs("g1", 3), belongs("g1", 4), false, "raft/we-are-outdated"},
		{"raft-leader-to-empty", "member", pki.Raft, belongs("", 0), belongs("g1", 4), false, ""},
		{"raft-empty-to-leader", "member", pki.Raft, belongs("g1", 4), belongs("", 0), false, ""},
		{"raft-both-empty", "member", pki.Raft, belongs("", 0), belongs("", 0), false, ""},
		{"raft-joined", "member", pki.Raft, belongs("g1", 4), belongs("g1", 0), false, ""},
		{"raft-follower-of-epochs", "member", pki.Raft, belongs("g1", 4), belongs("g1", 3), true, "raft/member-follows-epochs"},
		{"raft-foreign-and-old", "foreign", pki.Raft, belongs("g1", 3), belongs("g1", 2), false, "raft/peer-outdated"},

		{"api-member", "member", pki.API, belongs("g1", 3), belongs("g1", 3), false, ""},
		{"api-agent", "agent", pki.API, belongs("g1", 3), belongs("g1", 2), true, ""},
		{"api-agent-ahead", "agent", pki.API, belongs("g1", 3), belongs("g1", 4), true, "api/behind"},
		{"api-agent-astray", "agent", pki.API, belongs("g1", 3), belongs("g2", 3), true, "api/other-group"},
		{"api-operator", "operator", pki.API, belongs("g1", 3), nil, false, ""},
		{"api-viewer", "viewer", pki.API, belongs("g1", 3), nil, false, ""},
		{"api-viewer-of-empty", "viewer", pki.API, nil, nil, false, ""},
		{"api-expired", "expired", pki.API, belongs("g1", 3), nil, false, "api/expired"},
		{"api-foreign", "foreign", pki.API, belongs("g1", 3), nil, false, "api/unknown-ca"},
		{"api-older", "member", pki.API, belongs("g1", 3), belongs("g1", 2), false, "api/peer-outdated"},
		{"api-follower-of-epochs", "member", pki.API, belongs("g1", 3), belongs("g1", 2), true, "api/member-follows-epochs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, pki.Endpoint{Source: member, Self: test.ours}, test.port)
			client := &pki.Endpoint{Source: pkitest.Open(t, certs[test.cert]), Self: test.theirs, OrNewer: test.orNewer}
			_, err := s.connect(t, client, test.port)
			checkOutcome(t, s, err, test.want)
		})
	}
}

func checkOutcome(t *testing.T, s *server, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil || len(s.refused(t)) != 0 {
			t.Fatalf("not connected: %v, refused %v", err, s.refused(t))
		}
		return
	}
	if !errors.Is(err, pki.ErrRefusedByPeer) || !strings.Contains(err.Error(), "its log") {
		t.Errorf("client was told: %v", err)
	}
	if got := s.refused(t); len(got) != 1 || got[want] != 1 {
		t.Errorf("counted %v, want one %s", got, want)
	}
	_, reason, _ := strings.Cut(want, "/")
	for _, part := range []string{`msg="handshake refused"`, "reason=" + reason, "remote=127.0.0.1:", "ours=", "theirs=", "remedy=", "err="} {
		if !strings.Contains(s.log.String(), part) {
			t.Errorf("no %s in the log:\n%s", part, s.log)
		}
	}
}

func TestRefusalNamesBothSidesAndTheClaim(t *testing.T) {
	t.Parallel()
	ca, foreign := newCA(t, pki.CAOptions{}), newCA(t, pki.CAOptions{})
	member := pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"}))
	s := serve(t, pki.Endpoint{Source: member, Self: belongs("g1", 3)}, pki.Raft)

	agent := pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Agent, Name: "n7"}))
	_, _ = s.connect(t, &pki.Endpoint{Source: agent, Self: belongs("g1", 3)}, pki.Raft)
	stranger := issue(t, foreign, pki.Request{Role: pki.Member, Name: "m9"})
	stranger.CA = filepath.Join(ca, pki.CAFile)
	_, _ = s.connect(t, &pki.Endpoint{Source: pkitest.Open(t, stranger), Self: belongs("g1", 3)}, pki.Raft)
	_, _ = s.connect(t, &pki.Endpoint{Source: member, Self: belongs("g1", 4)}, pki.Raft)
	for _, part := range []string{
		`identity=agent/n7 claimed=""`,
		`identity="" claimed=member/m9`,
		"level=ERROR msg=\"handshake refused\" port=raft",
		"ours=g1/3 theirs=g1/4",
		"recovered without this member",
	} {
		if !strings.Contains(s.log.String(), part) {
			t.Errorf("no %s in the log:\n%s", part, s.log)
		}
	}
}

// Any two members get a connection exactly when Meet says so, whatever the port.
func TestPropertyPortsKeepToMeet(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	source := pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"}))
	var ours, theirs pki.Membership
	self := func(m *pki.Membership) pki.Self {
		return func() pki.Membership { return *m }
	}
	servers := map[pki.Port]*server{}
	for _, port := range []pki.Port{pki.Raft, pki.API} {
		servers[port] = serve(t, pki.Endpoint{Source: source, Self: self(&ours)}, port)
	}
	client := &pki.Endpoint{Source: source, Self: self(&theirs)}
	testkit.Check(t, func(r *rapid.T) {
		draw := func(label string) (m pki.Membership) {
			if m.Group = rapid.SampledFrom([]string{"", "g1", "g2"}).Draw(r, label+" group"); m.Group != "" {
				m.Epoch = rapid.Uint64Range(0, 3).Draw(r, label+" epoch")
				m.Nonce = rapid.SampledFrom([]string{"", "k3x9"}).Draw(r, label+" nonce")
			}
			return m
		}
		ours, theirs = draw("our"), draw("their")
		port := rapid.SampledFrom([]pki.Port{pki.Raft, pki.API}).Draw(r, "port")
		conn, err := servers[port].connect(t, client, port)
		if conn != nil {
			_ = conn.Close()
		}
		if (err == nil) != (pki.Meet(ours, theirs) == pki.Welcome) {
			r.Fatalf("%s dials %s on %s: %v", theirs, ours, port, err)
		}
	})
}

func TestRaftPortRefusesOtherProtocols(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	files := issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"})
	s := serve(t, pki.Endpoint{Source: pkitest.Open(t, files), Self: belongs("g1", 3)}, pki.Raft)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	for name, protocols := range map[string][]string{"none": nil, "http": {"h2", "http/1.1"}, "api": {"fairlead/g1/3"}} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", s.address, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols, Certificates: []tls.Certificate{pair}})
			if err == nil {
				err = ping(conn)
				_ = conn.Close()
			}
			if err == nil {
				t.Fatal("connected")
			}
		})
	}
	if got := s.refused(t)["raft/no-common-protocol"]; got != 3 {
		t.Fatalf("counted %v", s.refused(t))
	}
}

func TestPortsRefuseOldTLSAndNoCertificate(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	files := issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"})
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, pki.Endpoint{Source: pkitest.Open(t, files)}, pki.API)
	for name, config := range map[string]*tls.Config{
		"tls12":          {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
		"no-certificate": {InsecureSkipVerify: true},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := tls.Dial("tcp", s.address, config)
			if err == nil {
				err = ping(conn)
				_ = conn.Close()
			}
			if err == nil {
				t.Fatal("connected")
			}
		})
	}
	if got := s.refused(t)["api/no-certificate"]; got != 1 {
		t.Fatalf("counted %v", s.refused(t))
	}
}

func TestClientTrustsOnlyMembersAtTheirHost(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	client := &pki.Endpoint{Source: pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Operator, Name: "alice"}))}
	elsewhere := serve(t, pki.Endpoint{Source: pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"192.0.2.1"}}))}, pki.API)
	if _, err := elsewhere.connect(t, client, pki.API); err == nil || !strings.Contains(err.Error(), "with this host") {
		t.Errorf("member of another host: %v", err)
	}
	agent := serve(t, pki.Endpoint{Source: pkitest.Open(t, issue(t, ca, pki.Request{Role: pki.Agent, Name: "n1"}))}, pki.API)
	if _, err := agent.connect(t, client, pki.API); err == nil {
		t.Error("an agent's certificate was taken for a member's")
	}
	foreign := serve(t, pki.Endpoint{Source: pkitest.Open(t, issue(t, newCA(t, pki.CAOptions{}), pki.Request{Role: pki.Member, Name: "m1"}))}, pki.API)
	if _, err := foreign.connect(t, client, pki.API); err == nil || !strings.Contains(err.Error(), "ca.crt of this group") {
		t.Errorf("member of another CA: %v", err)
	}
}

// While the CA rotates, certificates of the old and of the new one are good on both sides; when the old one
// is dropped its certificates are not, at once and without a restart, and connections that exist go on.
func TestCARotatesWithOverlapAndWithoutRestart(t *testing.T) {
	t.Parallel()
	oldCA, freshCA := newCA(t, pki.CAOptions{}), newCA(t, pki.CAOptions{})
	read := func(dir string) string {
		data, err := os.ReadFile(filepath.Join(dir, pki.CAFile))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	trust := func(files pki.Files, bundle string) {
		if err := os.WriteFile(files.CA, []byte(bundle), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serverFiles := issue(t, oldCA, pki.Request{Role: pki.Member, Name: "m1"})
	oldFiles := issue(t, oldCA, pki.Request{Role: pki.Member, Name: "m2"})
	freshFiles := issue(t, freshCA, pki.Request{Role: pki.Member, Name: "m3"})
	both := read(oldCA) + read(freshCA)
	trust(freshFiles, both)
	s := serve(t, pki.Endpoint{Source: pkitest.Open(t, serverFiles)}, pki.Raft)
	old, fresh := &pki.Endpoint{Source: pkitest.Open(t, oldFiles)}, &pki.Endpoint{Source: pkitest.Open(t, freshFiles)}

	stays, err := s.connect(t, old, pki.Raft)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.connect(t, fresh, pki.Raft); err == nil {
		t.Fatal("connected with a CA that the server does not know yet")
	}
	trust(serverFiles, both)
	trust(oldFiles, both)
	for name, client := range map[string]*pki.Endpoint{"old": old, "fresh": fresh} {
		if _, err := s.connect(t, client, pki.Raft); err != nil {
			t.Fatalf("%s during the overlap: %v", name, err)
		}
	}
	reissued, err := pki.Issue(freshCA, pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reissued.Write(filepath.Dir(serverFiles.Cert)); err != nil { // brings its own ca.crt: the new CA alone
		t.Fatal(err)
	}
	if _, err := s.connect(t, fresh, pki.Raft); err != nil {
		t.Fatalf("after the rotation: %v", err)
	}
	if _, err := s.connect(t, old, pki.Raft); err == nil {
		t.Fatal("the dropped CA is still trusted")
	}
	if err := ping(stays); err != nil {
		t.Fatalf("an existing stream broke: %v", err)
	}
}
