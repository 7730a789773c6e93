// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"fmt"
	"time"
)

// Revoked tells why nobody shall deal with the holder of a certificate any more; empty while nothing is said against it. The serial
// number is as Serial gives it. Of somebody for whom a member hands a call on, the number may be missing, and issued is zero. It is
// asked for each handshake and each call, and must be quick.
type Revoked func(id Identity, serial string, issued time.Time) (why string)

// Of asks about a certificate and its identity. A nil Revoked has nothing against anybody.
func (r Revoked) Of(id Identity, cert *x509.Certificate) (why string) {
	if r == nil {
		return ""
	}
	return r(id, Serial(cert), cert.NotBefore)
}

// Serial is a certificate's serial number as people and the record write it: lower-case hexadecimal, without leading zeros.
func Serial(cert *x509.Certificate) string { return cert.SerialNumber.Text(16) }

// Backdate is by how much certificates say that they were issued earlier than they were.
const Backdate = backdate

// checkRevoked refuses a member at address whose certificate was revoked.
func (e *Endpoint) checkRevoked(cert *x509.Certificate, address string) error {
	id, err := Identify(cert)
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if why := e.Revoked.Of(id, cert); why != "" {
		return fmt.Errorf("%s: the certificate of %s: %s", address, id, why)
	}
	return nil
}
