// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
)

// A crowd of connections that finished their handshake and enrol nobody, or did not even begin it, closes enrolment to nobody,
// and the API to nobody who has a certificate.
func TestCrowdDoesNotCloseEnrolment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.serve(t, "m1", enrol.Options{Signer: w.ca.Authority(t)})
	roots, err := pki.ReadRoots(w.ca.Cert())
	if err != nil {
		t.Fatal(err)
	}
	stranger := &pki.Endpoint{Roots: roots}
	config, err := stranger.Client(pki.API, m.address)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		for _, speaks := range []bool{false, true} {
			conn, err := net.Dial("tcp", m.address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if !speaks {
				continue
			}
			if err := tls.Client(conn, config).HandshakeContext(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	h := w.host(t, w.offer(t, m, "n1", time.Hour))
	if err := h.enrol(t, "n1", m); err != nil {
		t.Error(err)
	}
}
