// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"

	"fairlead.io/fairlead/internal/smallfile"
)

// Callers are those who may connect to a Serving, by certificates of a CA that is not the group's. The zero value is everybody,
// without a certificate.
type Callers struct {
	CA string // a file in PEM, read at each handshake
	// Names are the common names, or DNS names, of those who may call; none: whoever has a certificate of the CA.
	Names []string
}

// roots are the CAs of callers; nil without.
func (c Callers) roots() (*x509.CertPool, error) {
	if c.CA == "" {
		return nil, nil
	}
	bundle, err := smallfile.Read(c.CA, smallfile.Most)
	if err != nil {
		return nil, fmt.Errorf("CA of callers: %w", err)
	}
	cas, err := parseBundle(bundle)
	if err != nil {
		return nil, fmt.Errorf("CA of callers %s: %w", c.CA, err)
	}
	return poolOf(cas), nil
}

// demand has a server ask for certificates of callers, as the file of their CA is now.
func (c Callers) demand(server *tls.Config) {
	if c.CA == "" {
		return
	}
	base := server.Clone()
	base.NextProtos = []string{"h2", "http/1.1"}
	base.ClientAuth, base.SessionTicketsDisabled = tls.RequireAndVerifyClientCert, true // a ticket would outlive another CA
	base.VerifyConnection = func(state tls.ConnectionState) error { return c.admit(state.PeerCertificates[0]) }
	server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		roots, err := c.roots()
		if err != nil {
			return nil, err
		}
		now := base.Clone()
		now.ClientCAs = roots
		return now, nil
	}
}

// admit tells whether a caller whose certificate is in order is one of those who may call.
func (c Callers) admit(cert *x509.Certificate) error {
	if len(c.Names) == 0 || slices.Contains(c.Names, cert.Subject.CommonName) {
		return nil
	}
	for _, name := range cert.DNSNames {
		if slices.Contains(c.Names, name) {
			return nil
		}
	}
	return fmt.Errorf("%q may not call, only %q", cert.Subject.CommonName, c.Names)
}
