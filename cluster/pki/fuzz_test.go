// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
)

// FuzzRequests signs requests for certificates: what they ask for counts for nothing, and what is signed is what its caller was proven to be.
func FuzzRequests(f *testing.F) {
	for _, text := range []string{"n1", "edge-1.example", "operator", ""} {
		good, _, err := pki.NewRequest()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(good, text, false)
		f.Add(greedy(f, elliptic.P256()), text, true)
		f.Add(greedy(f, elliptic.P384()), text, false)
	}
	ca := pkitest.New(f)
	signer := ca.Authority(f)
	f.Fuzz(func(t *testing.T, request []byte, name string, outside bool) {
		want := pki.Request{Role: pki.Agent, Name: name, TTL: time.Hour}
		if outside {
			want.Role = pki.Host
		}
		signed, err := signer.Sign(request, want)
		if err != nil {
			if !errors.Is(err, pki.ErrRequest) {
				t.Fatal(err)
			}
			return
		}
		cert := parse(t, signed.Cert)
		if id, err := pki.Identify(cert); err != nil || id.Role != want.Role || id.Name != name || id != signed.Identity {
			t.Errorf("signed for %+v, %v; asked for %s %q", id, err, want.Role, name)
		}
		key, ok := cert.PublicKey.(*ecdsa.PublicKey)
		if !ok || key.Curve != elliptic.P256() || cert.IsCA || len(cert.URIs) != 1 || len(cert.DNSNames)+len(cert.IPAddresses)+len(cert.EmailAddresses) > 0 ||
			!slices.Equal(cert.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}) || time.Until(cert.NotAfter) > time.Hour || signed.Key != nil {
			t.Errorf("signed %+v", cert)
		}
	})
}

// greedy asks for all that a request can ask for.
func greedy(t testing.TB, curve elliptic.Curve) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "root", Organization: []string{"fairlead:operator"}}, DNSNames: []string{"m1"}, EmailAddresses: []string{"a@example.com"},
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}}, // a CA
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// FuzzActors reads who a member says that it speaks for: whatever is read is written as it was, since histories show it.
func FuzzActors(f *testing.F) {
	for _, text := range []string{"operator/alice", "viewer/", "/x", "root/alice", "agent/n1/x", "member/m1", "operator/Alice", "host/a..b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := pki.ParseActor(text); err == nil && (id.String() != text || !slices.Contains(pki.Roles(), id.Role) || pki.CheckName(id.Name) != nil) {
			t.Errorf("%q is read as %+v", text, id)
		}
	})
}
