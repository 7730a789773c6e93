// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Authority signs certificate requests with a CA's key. It reads its files for each request, so that another CA in
// their place counts at once.
type Authority struct{ cert, key string }

// OpenAuthority looks at the files of a CA for the first time: now they must be in order.
func OpenAuthority(certFile, keyFile string) (*Authority, error) {
	_, err := openAuthority(certFile, keyFile)
	return &Authority{cert: certFile, key: keyFile}, err
}

// ErrRequest is part of the error of a certificate request that is none, or of a key that is not good enough.
var ErrRequest = errors.New("not a certificate request that can be signed")

// Sign makes a certificate for the key of a certificate request (PKCS #10, DER). Nothing else in it counts: what the
// certificate says is in req. Issued.Key is nil.
//
// Errors: ErrRequest, also where req makes no sense; the CA cannot be read or has expired.
func (a *Authority) Sign(request []byte, req Request) (*Issued, error) {
	if err := req.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	parsed, err := x509.ParseCertificateRequest(request)
	if err == nil {
		err = parsed.CheckSignature() // whoever asks has the key
	}
	if err != nil {
		return nil, fmt.Errorf("issue certificate %s/%s: %w: %w", req.Role, req.Name, ErrRequest, err)
	}
	if key, ok := parsed.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("issue certificate %s/%s: %w: use an ECDSA key on P-256", req.Role, req.Name, ErrRequest)
	}
	ca, err := openAuthority(a.cert, a.key)
	if err != nil {
		return nil, err
	}
	return ca.issue(req, parsed.PublicKey)
}

// HostsOf gives the names and addresses at which a member's certificate is good.
func HostsOf(cert *x509.Certificate) []string {
	hosts := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// NewRequest makes a key and a certificate request for it (DER). The key, PEM, is for its holder alone.
func NewRequest() (request, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err == nil {
		request, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, private)
	}
	if err == nil {
		key, err = encodeKey(private)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate request: %w", err)
	}
	return request, key, nil
}

// RenewFrom is when a certificate is due to be renewed: with a third of its life left. Its holder then has that long to
// find somebody who signs.
func RenewFrom(cert *x509.Certificate) (at time.Time, window time.Duration) {
	window = cert.NotAfter.Sub(cert.NotBefore.Add(backdate)) / 3
	return cert.NotAfter.Add(-window), window
}
