// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/internal/testkit"
)

func parse(t rapid.TB, certPEM []byte) *x509.Certificate {
	block, _ := pem.Decode(certPEM)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// Whatever name Issue accepts is the name that the certificate proves, letter by letter.
func TestPropertyIssuedIsIdentified(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{Name: "harbour"})
	testkit.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(
			rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?(\.[a-z0-9]{1,3})?`),
			rapid.StringMatching(`[a-zA-Z0-9./%?#@:_ \-é]{0,12}`),
		).Draw(t, "name")
		role := rapid.SampledFrom([]pki.Role{pki.Member, pki.Agent, pki.Operator, pki.Viewer, "root", ""}).Draw(t, "role")
		req := pki.Request{Role: role, Name: name}
		if role == pki.Member {
			req.Hosts = []string{"192.0.2.1"}
		}
		issued, err := pki.Issue(ca, req)
		if err != nil {
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == "" && name != "" && role != "root" && role != "" {
				t.Fatalf("plain name %q refused: %v", name, err)
			}
			return
		}
		got, err := pki.Identify(parse(t, issued.Cert))
		if want := (pki.Identity{Domain: "harbour", Role: role, Name: name}); err != nil || got != want {
			t.Fatalf("identified as %+v, %v; want %+v", got, err, want)
		}
		back, err := pki.ParseActor(got.String())
		if back.Domain = "harbour"; err != nil || back != got {
			t.Fatalf("actor %q read back as %+v, %v", got, back, err)
		}
	})
}

func TestIdentifyRefusesWhatIssueNeverWrites(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	issued, err := pki.Issue(ca, pki.Request{Role: pki.Viewer, Name: "eve"})
	if err != nil {
		t.Fatal(err)
	}
	uri := func(text string) *url.URL {
		parsed, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for name, change := range map[string]func(*x509.Certificate){
		"no-uri":          func(c *x509.Certificate) { c.URIs = nil },
		"foreign-uri":     func(c *x509.Certificate) { c.URIs = []*url.URL{uri("spiffe://fairlead/viewer/eve")} },
		"two-uris":        func(c *x509.Certificate) { c.URIs = append(c.URIs, uri("fairlead://elsewhere/viewer/eve")) },
		"unknown-role":    func(c *x509.Certificate) { c.URIs[0] = uri("fairlead://fairlead/root/eve") },
		"other-role":      func(c *x509.Certificate) { c.URIs[0] = uri("fairlead://fairlead/operator/eve") },
		"other-name":      func(c *x509.Certificate) { c.URIs[0] = uri("fairlead://fairlead/viewer/adam") },
		"extra-segment":   func(c *x509.Certificate) { c.URIs[0] = uri("fairlead://fairlead/viewer/eve/operator") },
		"query":           func(c *x509.Certificate) { c.URIs[0] = uri("fairlead://fairlead/viewer/eve?role=operator") },
		"user":            func(c *x509.Certificate) { c.URIs[0] = uri("fairlead://operator@fairlead/viewer/eve") },
		"no-domain":       func(c *x509.Certificate) { c.URIs[0] = uri("fairlead:///viewer/eve") },
		"no-organization": func(c *x509.Certificate) { c.Subject.Organization = nil },
		"two-organizations": func(c *x509.Certificate) {
			c.Subject.Organization = append(c.Subject.Organization, "fairlead:operator")
		},
		"ca": func(c *x509.Certificate) { c.IsCA = true },
	} {
		t.Run(name, func(t *testing.T) {
			cert := parse(t, issued.Cert)
			if _, err := pki.Identify(cert); err != nil {
				t.Fatalf("unchanged: %v", err)
			}
			change(cert)
			if id, err := pki.Identify(cert); !errors.Is(err, pki.ErrNoIdentity) {
				t.Fatalf("identified as %s, %v", id, err)
			}
		})
	}
}

func TestInitNeverOverwrites(t *testing.T) {
	t.Parallel()
	for _, left := range []string{pki.CAFile, pki.CAKeyFile} {
		t.Run(left, func(t *testing.T) {
			dir := newCA(t, pki.CAOptions{})
			other := pki.CAFile
			if left == other {
				other = pki.CAKeyFile
			}
			if err := os.Remove(filepath.Join(dir, other)); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(filepath.Join(dir, left))
			if err != nil {
				t.Fatal(err)
			}
			err = pki.Init(dir, pki.CAOptions{})
			if !errors.Is(err, pki.ErrExists) || !strings.Contains(err.Error(), "another folder") {
				t.Fatalf("second init: %v", err)
			}
			after, _ := os.ReadFile(filepath.Join(dir, left))
			if string(before) != string(after) {
				t.Fatal("the file was changed")
			}
			if _, err := os.Stat(filepath.Join(dir, other)); err == nil {
				t.Fatal("the missing file was made")
			}
		})
	}
}

func TestOfSimultaneousInitsOneWins(t *testing.T) {
	t.Parallel()
	for range 20 {
		dir := filepath.Join(t.TempDir(), "ca")
		results := make(chan error)
		const rivals = 8
		for range rivals {
			go func() { results <- pki.Init(dir, pki.CAOptions{}) }()
		}
		won := 0
		for range rivals {
			if <-results == nil {
				won++
			}
		}
		if _, err := pki.Issue(dir, pki.Request{Role: pki.Viewer, Name: "x"}); err != nil || won != 1 {
			t.Fatalf("%d of %d inits succeeded; the CA they left: %v", won, rivals, err)
		}
	}
}

func TestKeysAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	files := issue(t, ca, pki.Request{Role: pki.Operator, Name: "alice"})
	for _, path := range []string{filepath.Join(ca, pki.CAKeyFile), files.Key} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", filepath.Base(path), info.Mode().Perm())
		}
	}
}

func TestCertificatesLiveAsLongAsTheirRole(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	ca := newCA(t, pki.CAOptions{TTL: 30 * 24 * time.Hour, Now: clock})
	for _, test := range []struct {
		role pki.Role
		ttl  time.Duration
		want time.Duration
	}{
		{pki.Member, 0, 24 * time.Hour},
		{pki.Agent, 0, 24 * time.Hour},
		{pki.Agent, time.Hour, time.Hour},
		{pki.Operator, 0, 30 * 24 * time.Hour}, // not beyond its CA
		{pki.Viewer, 48 * time.Hour, 48 * time.Hour},
	} {
		req := pki.Request{Role: test.role, Name: "x", TTL: test.ttl, Now: clock}
		if test.role == pki.Member {
			req.Hosts = []string{"192.0.2.1"}
		}
		issued, err := pki.Issue(ca, req)
		if err != nil {
			t.Fatal(err)
		}
		if cert := parse(t, issued.Cert); !cert.NotAfter.Equal(now.Add(test.want)) || !issued.NotAfter.Equal(cert.NotAfter) {
			t.Errorf("%s with %s ends %s, want %s", test.role, test.ttl, cert.NotAfter, now.Add(test.want))
		}
	}
	now = now.Add(31 * 24 * time.Hour)
	if _, err := pki.Issue(ca, pki.Request{Role: pki.Viewer, Name: "x", Now: clock}); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("issue from an expired CA: %v", err)
	}
}

func TestIssueRefusesWithoutWritingAnything(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	for name, req := range map[string]pki.Request{
		"member-without-host": {Role: pki.Member, Name: "m1"},
		"agent-with-host":     {Role: pki.Agent, Name: "n1", Hosts: []string{"192.0.2.1"}},
		"bad-host":            {Role: pki.Member, Name: "m1", Hosts: []string{"m1:7443"}},
		"negative-ttl":        {Role: pki.Agent, Name: "n1", TTL: -time.Second},
		"bad-name":            {Role: pki.Agent, Name: "../n1"},
	} {
		t.Run(name, func(t *testing.T) {
			if issued, err := pki.Issue(ca, req); err == nil {
				t.Fatalf("issued %s", issued.Identity)
			}
		})
	}
	issued, err := pki.Issue(ca, pki.Request{Role: pki.Viewer, Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := issued.Write(ca); err == nil {
		t.Error("a certificate was written beside the CA's key")
	}
}

func TestIssueUsesTheCAThatItsKeyBelongsTo(t *testing.T) {
	t.Parallel()
	old, fresh := newCA(t, pki.CAOptions{Name: "old"}), newCA(t, pki.CAOptions{Name: "fresh"})
	oldCert, err := os.ReadFile(filepath.Join(old, pki.CAFile))
	if err != nil {
		t.Fatal(err)
	}
	freshFile := filepath.Join(fresh, pki.CAFile)
	freshCert, err := os.ReadFile(freshFile)
	if err != nil {
		t.Fatal(err)
	}
	bundle := string(oldCert) + string(freshCert) // the foreign one first
	if err := os.WriteFile(freshFile, []byte(bundle), 0o600); err != nil {
		t.Fatal(err)
	}
	issued, err := pki.Issue(fresh, pki.Request{Role: pki.Agent, Name: "n1"})
	if err != nil || issued.Identity.Domain != "fresh" || string(issued.CA) != bundle {
		t.Fatalf("issued %+v, %v", issued, err)
	}
	if err := os.WriteFile(freshFile, oldCert, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.Issue(fresh, pki.Request{Role: pki.Agent, Name: "n1"}); err == nil {
		t.Fatal("issued by a CA whose key is not here")
	}
}
