// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"fairlead.io/fairlead/internal/smallfile"
)

// protocolEnrol is what a client offers beside HTTP/2 that has no certificate yet and means it: one that merely forgot
// to name its certificate is refused as ever.
const protocolEnrol = "fairlead-enrol"

// admitStranger lets one in.
func admitStranger(conn net.Conn) *refusal {
	accepted, ok := conn.(*Conn)
	if !ok {
		return &refusal{reason: reasonProtocol, err: errors.New("the server does not watch its connections"), remedy: "wrap its listener"}
	}
	accepted.stranger.Store(true)
	return nil
}

// Stranger tells whether the client came without a certificate, to enrol.
func (c *Conn) Stranger() bool { return c.stranger.Load() }

// strangersClient is Client of somebody without certificate.
func (e *Endpoint) strangersClient(host, address string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		Time:       e.Now,
		ServerName: host,
		RootCAs:    e.Roots,
		NextProtos: []string{"h2", protocolEnrol},
		VerifyConnection: func(state tls.ConnectionState) error {
			return checkServer(state.PeerCertificates[0], address)
		},
	}
}

// ReadRoots reads a file of CA certificates, as a stranger's Endpoint needs it.
func ReadRoots(path string) (*x509.CertPool, error) {
	bundle, err := smallfile.Read(path, smallfile.Most)
	if err != nil {
		return nil, fmt.Errorf("CA certificates: %w; name a copy of the group's ca.crt", err)
	}
	cas, err := parseBundle(bundle)
	if err != nil {
		return nil, fmt.Errorf("CA certificates %s: %w; name a copy of the group's ca.crt", path, err)
	}
	return poolOf(cas), nil
}

func poolOf(cas []*x509.Certificate) *x509.CertPool {
	roots := x509.NewCertPool()
	for _, ca := range cas {
		roots.AddCert(ca)
	}
	return roots
}
