// SPDX-License-Identifier: Apache-2.0

// Package transporttest gives tests a certificate with which their members talk to each other over loopback. It trusts itself and nobody
// else; what members have outside of tests is in package pki, which knows nothing of Raft's transport.
package transporttest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"
)

// Certificate is one that all members of a test share.
type Certificate struct {
	Pool *x509.CertPool
	Pair tls.Certificate
}

// New makes a certificate.
func New(t testing.TB) Certificate {
	t.Helper()
	c, err := Parse(Make(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Make makes the bytes of a certificate, for other processes to Parse.
func Make(t testing.TB) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "member"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err = x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	key, err = x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// Parse is the certificate of what Make made.
func Parse(certificate, key []byte) (Certificate, error) {
	private, err := x509.ParseECPrivateKey(key)
	if err != nil {
		return Certificate{}, err
	}
	parsed, err := x509.ParseCertificate(certificate)
	if err != nil {
		return Certificate{}, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return Certificate{pool, tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: private}}, nil
}

// Name is who the certificate is of, as transport.TLS asks for it.
func (c Certificate) Name(cert *x509.Certificate) (string, error) {
	return cert.Subject.CommonName, nil
}

// Server is how a member listens: nobody gets in without the certificate.
func (c Certificate) Server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.Pair}, ClientCAs: c.Pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

// Dial is how a member calls another one.
func (c Certificate) Dial(ctx context.Context, address string) (net.Conn, error) {
	d := tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c.Pair}, RootCAs: c.Pool}}
	return d.DialContext(ctx, "tcp", address)
}
