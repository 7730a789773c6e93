// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"testing"
	"time"
)

// Connections are made anew when there has been time to get another certificate, before members end them, and not all at once.
func TestConnectionsAreMadeAnewBetweenRenewalAndTheEnd(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, life := range []time.Duration{time.Minute, MachineTTL, PersonTTL} {
		cert := &x509.Certificate{NotBefore: begin.Add(-backdate), NotAfter: begin.Add(life)}
		due, window := RenewFrom(cert)
		first, last := replaceFrom(cert, 0), replaceFrom(cert, 1)
		if first.Before(due.Add(window/4)) || !last.Before(cert.NotAfter) || last.Sub(first) < window/4 {
			t.Errorf("of %v, renewed from %v: between %v and %v", life, due, first, last)
		}
	}
}
