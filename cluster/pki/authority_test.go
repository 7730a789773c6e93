// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
)

func authority(t *testing.T, ca string) *pki.Authority {
	t.Helper()
	a, err := pki.OpenAuthority(filepath.Join(ca, pki.CAFile), filepath.Join(ca, pki.CAKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func request(t *testing.T) (csr, key []byte) {
	t.Helper()
	csr, key, err := pki.NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	return csr, key
}

func TestSignedCertificateIsOfTheKeyThatAsked(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	csr, key := request(t)
	signed, err := authority(t, ca).Sign(csr, pki.Request{Role: pki.Agent, Name: "n1"})
	if err != nil || signed.Key != nil {
		t.Fatalf("%v, with a key: %v", err, signed.Key != nil)
	}
	dir := filepath.Join(t.TempDir(), "new", "folder")
	files := pki.Files{CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "n1.crt"), Key: filepath.Join(dir, "n1.key")}
	if err := files.Install(signed.Cert, key, signed.CA); err != nil {
		t.Fatal(err)
	}
	if got := pkitest.Open(t, files).Material().Identity.String(); got != "agent/n1" {
		t.Errorf("installed %s", got)
	}
	_, other := request(t)
	before, _ := os.ReadFile(files.Key)
	if err := files.Install(signed.Cert, other, signed.CA); err == nil {
		t.Error("a key that does not fit was installed")
	}
	if after, _ := os.ReadFile(files.Key); string(after) != string(before) {
		t.Error("a refused installation changed the key")
	}
}

func TestAuthorityRefusesRequestsThatProveNothing(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	good, _ := request(t)
	forged := append([]byte{}, good...)
	forged[len(forged)-1] ^= 1
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaRequest, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, weak)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		csr []byte
		req pki.Request
	}{
		"garbage":    {[]byte("x"), pki.Request{Role: pki.Agent, Name: "n1"}},
		"forged":     {forged, pki.Request{Role: pki.Agent, Name: "n1"}},
		"rsa":        {rsaRequest, pki.Request{Role: pki.Agent, Name: "n1"}},
		"bad-name":   {good, pki.Request{Role: pki.Agent, Name: "../n1"}},
		"other-role": {good, pki.Request{Role: "root", Name: "n1"}},
	} {
		if _, err := authority(t, ca).Sign(c.csr, c.req); !errors.Is(err, pki.ErrRequest) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pki.OpenAuthority(filepath.Join(newCA(t, pki.CAOptions{}), pki.CAFile), filepath.Join(ca, pki.CAKeyFile)); err == nil || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("the key of another CA: %v", err)
	}
}

// Whatever a crash leaves of an installation, what is read then is the old certificate or the new one.
func TestCrashDuringInstallationLeavesOneThatWorks(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	for steps := range 4 { // files that were put in place before the crash: CA, key, certificate
		files := issue(t, ca, pki.Request{Role: pki.Agent, Name: "n1"})
		csr, key := request(t)
		signed, err := authority(t, ca).Sign(csr, pki.Request{Role: pki.Agent, Name: "n1", TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range []struct {
			path string
			data []byte
		}{{files.CA, signed.CA}, {files.Key, key}, {files.Cert, signed.Cert}} {
			path := f.path
			if i >= steps {
				path += ".next"
			}
			if err := os.WriteFile(path, f.data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		life := time.Until(pkitest.Open(t, files).Material().Certificate.Leaf.NotAfter)
		if renewed := life <= time.Hour; renewed != (steps >= 2) {
			t.Errorf("after %d steps: certificate for another %v", steps, life)
		}
	}
}

func TestRenewalIsDueWithAThirdOfItsLifeLeft(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	begin := time.Now()
	files := issue(t, ca, pki.Request{Role: pki.Agent, Name: "n1", Now: func() time.Time { return begin }})
	at, window := pki.RenewFrom(pkitest.Open(t, files).Material().Certificate.Leaf)
	if got := at.Sub(begin).Round(time.Minute); got != 16*time.Hour || window.Round(time.Minute) != 8*time.Hour {
		t.Errorf("due after %v, with %v left", got, window)
	}
}
