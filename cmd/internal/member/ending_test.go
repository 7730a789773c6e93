// SPDX-License-Identifier: Apache-2.0

package member

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
)

// A member whose certificate nobody renews is not ready well before the end, with what to do; while it is renewed in time it is.
func TestReadinessFailsBeforeTheCertificateEnds(t *testing.T) {
	begin := time.Now()
	leaf := &x509.Certificate{NotBefore: begin, NotAfter: begin.Add(24 * time.Hour)}
	at, window := pki.RenewFrom(leaf)
	for name, c := range map[string]struct {
		at   time.Time
		want string
	}{
		"fresh":          {begin, ""},
		"renewal-is-due": {at, ""},
		"retrying":       {at.Add(window / 2), ""},
		"not-renewed":    {at.Add(window/2 + time.Second), "ends at"},
		"over":           {leaf.NotAfter.Add(time.Second), "is over since"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ending(leaf, c.at)
			if (err == nil) != (c.want == "") {
				t.Fatalf("%v, want %q", err, c.want)
			}
			for _, want := range []string{c.want, "tls.caKey", "pki issue"} {
				if err != nil && !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in %v", want, err)
				}
			}
		})
	}
}
