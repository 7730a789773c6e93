// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"log/slog"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
)

// newSigner makes a signer of a CA, and what signs with it where members have it: ca.crt of the CA, and both files of the signer.
func newSigner(t *testing.T, ca string, opts pki.CAOptions) (dir string, a *pki.Authority) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "signer")
	if _, err := pki.InitSigner(ca, dir, opts); err != nil {
		t.Fatal(err)
	}
	a, err := pki.OpenAuthority(filepath.Join(ca, pki.CAFile), filepath.Join(dir, pki.SignerKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	return dir, a
}

// signed are files of somebody whom an authority gave a certificate.
func signed(t *testing.T, a *pki.Authority, req pki.Request) pki.Files {
	t.Helper()
	csr, key := request(t)
	made, err := a.Sign(csr, req)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := pki.Files{CA: filepath.Join(dir, "ca.crt"), Cert: filepath.Join(dir, "x.crt"), Key: filepath.Join(dir, "x.key")}
	if err := files.Install(made.Cert, key, made.CA); err != nil {
		t.Fatal(err)
	}
	return files
}

// reach has a client shake hands with a member's API port, and gives what the client hears.
func reach(t *testing.T, server, client pki.Files) error {
	t.Helper()
	s := serve(t, pki.Endpoint{Source: pkitest.Open(t, server)}, pki.API)
	_, err := s.connect(t, &pki.Endpoint{Source: pkitest.Open(t, client)}, pki.API)
	return err
}

// forge makes a certificate with a signer's key that the signer itself would not make.
func forge(t *testing.T, signer string, role pki.Role, name string) pki.Files {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(signer, pki.SignerFile), filepath.Join(signer, pki.SignerKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{Organization: []string{"fairlead:" + string(role)}, CommonName: name},
		URIs:      []*url.URL{{Scheme: "fairlead", Host: "fairlead", Path: "/" + string(role) + "/" + name}},
		NotBefore: pair.Leaf.NotBefore, NotAfter: pair.Leaf.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, pair.Leaf, key.Public(), pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := pki.Files{CA: filepath.Join(signer, pki.CAFile), Cert: filepath.Join(dir, "x.crt"), Key: filepath.Join(dir, "x.key")}
	cert := append(pemOf("CERTIFICATE", der), pemOf("CERTIFICATE", pair.Leaf.Raw)...)
	if err := errors.Join(os.WriteFile(files.Cert, cert, 0o600), os.WriteFile(files.Key, pemOf("PRIVATE KEY", pkcs8), 0o600)); err != nil {
		t.Fatal(err)
	}
	return files
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// formerCA is the folder of a CA as releases before signers made it: it vouches for leaves alone.
func formerCA(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"fairlead"}, CommonName: "CA fairlead"},
		URIs: []*url.URL{{Scheme: "fairlead", Host: "fairlead"}}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, pki.CAFile), pemOf("CERTIFICATE", der), 0o600),
		os.WriteFile(filepath.Join(dir, pki.CAKeyFile), pemOf("PRIVATE KEY", pkcs8), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Whoever the signer vouches for and whoever the CA itself vouches for know each other by ca.crt alone.
func TestSignerVouchesForMachinesInThePlaceOfTheCA(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	_, a := newSigner(t, ca, pki.CAOptions{})
	byCA := func(req pki.Request) pki.Files { return issue(t, ca, req) }
	bySigner := func(req pki.Request) pki.Files { return signed(t, a, req) }
	for name, server := range map[string]func(pki.Request) pki.Files{"ca": byCA, "signer": bySigner} {
		m := server(pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"127.0.0.1"}})
		for _, role := range []pki.Role{pki.Member, pki.Agent, pki.Host} {
			req := pki.Request{Role: role, Name: "x"}
			if role == pki.Member {
				req.Hosts = []string{"127.0.0.1"}
			}
			if err := reach(t, m, bySigner(req)); err != nil {
				t.Errorf("a %s by the signer, a member by the %s: %v", role, name, err)
			}
			if err := reach(t, m, byCA(req)); err != nil {
				t.Errorf("a %s by the CA, a member by the %s: %v", role, name, err)
			}
		}
	}
}

// The signer's key lies where machines are: who takes one of them is no operator by it.
func TestSignerVouchesForNoPerson(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	dir, a := newSigner(t, ca, pki.CAOptions{})
	csr, _ := request(t)
	for _, role := range []pki.Role{pki.Operator, pki.Viewer} {
		if _, err := a.Sign(csr, pki.Request{Role: role, Name: "eve"}); !errors.Is(err, pki.ErrRequest) || !strings.Contains(err.Error(), "machines alone") {
			t.Errorf("signed for a %s: %v", role, err)
		}
		m := issue(t, ca, pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"127.0.0.1"}})
		if err := reach(t, m, issue(t, ca, pki.Request{Role: role, Name: "alice"})); err != nil {
			t.Errorf("a %s of the CA: %v", role, err)
		}
		if err := reach(t, m, forge(t, dir, role, "eve")); !errors.Is(err, pki.ErrRefusedByPeer) {
			t.Errorf("a %s by the signer's key: %v", role, err)
		}
	}
}

func TestSignerIsMadeApartFromTheCAAndNeverOverwritten(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	if _, err := pki.InitSigner(ca, ca, pki.CAOptions{}); !errors.Is(err, pki.ErrExists) {
		t.Errorf("in the CA's folder: %v", err)
	}
	begin := time.Now()
	dir, a := newSigner(t, ca, pki.CAOptions{TTL: time.Hour, Now: func() time.Time { return begin }})
	if _, err := pki.InitSigner(ca, dir, pki.CAOptions{}); !errors.Is(err, pki.ErrExists) {
		t.Errorf("a second time: %v", err)
	}
	if end, err := a.NotAfter(); err != nil || end.Sub(begin).Round(time.Minute) != time.Hour {
		t.Errorf("ends %v after its begin, %v", end.Sub(begin), err)
	}
	for name, want := range map[string]fs.FileMode{".": 0o700, pki.SignerKeyFile: 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, pki.CAKeyFile)); err == nil {
		t.Error("the CA's key is beside the signer's")
	}
	csr, _ := request(t)
	made, err := a.Sign(csr, pki.Request{Role: pki.Agent, Name: "n1", Now: func() time.Time { return begin }})
	if err != nil || made.NotAfter.Sub(begin) > time.Hour {
		t.Errorf("what it signs lasts longer: %v, %v", made, err)
	}
	if _, err := a.Sign(csr, pki.Request{Role: pki.Agent, Name: "n1", Now: func() time.Time { return begin.Add(time.Hour) }}); err == nil || !strings.Contains(err.Error(), "fairlead pki signer") {
		t.Errorf("after its end: %v", err)
	}
	other := newCA(t, pki.CAOptions{})
	if _, err := pki.OpenAuthority(filepath.Join(other, pki.CAFile), filepath.Join(dir, pki.SignerKeyFile)); err == nil || !strings.Contains(err.Error(), "none of the CAs that are trusted belongs to") {
		t.Errorf("beside another CA: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, pki.SignerFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.OpenAuthority(filepath.Join(ca, pki.CAFile), filepath.Join(dir, pki.SignerKeyFile)); err == nil || !strings.Contains(err.Error(), "belongs to") {
		t.Errorf("without its certificate: %v", err)
	}
}

// A folder of a former release goes on as it is, and says how to come by a signer.
func TestCAOfAFormerReleaseVouchesForNoSigner(t *testing.T) {
	t.Parallel()
	ca := formerCA(t)
	if _, err := pki.InitSigner(ca, filepath.Join(t.TempDir(), "signer"), pki.CAOptions{}); err == nil || !strings.Contains(err.Error(), "fairlead pki rotate") {
		t.Errorf("made a signer: %v", err)
	}
	m := signed(t, authority(t, ca), pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"127.0.0.1"}})
	if err := reach(t, m, issue(t, ca, pki.Request{Role: pki.Operator, Name: "alice"})); err != nil {
		t.Errorf("without a signer: %v", err)
	}
	next := filepath.Join(t.TempDir(), "next")
	if err := pki.Rotate(ca, next, pki.CAOptions{}); err != nil {
		t.Fatal(err)
	}
	newSigner(t, next, pki.CAOptions{})
}

// What serves the API server is signed by the signer, too, and known by the CA.
func TestAdmissionIsKnownByTheCAOfItsSigner(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	_, a := newSigner(t, ca, pki.CAOptions{})
	s, err := pki.OpenServing(pki.ServingOptions{
		Names: []string{admissionName}, Files: pki.Files{CA: filepath.Join(ca, pki.CAFile)}, Authority: a, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := meet(t, s, bundleOf(t, s), admissionName, time.Now()); err != nil {
		t.Error(err)
	}
}
