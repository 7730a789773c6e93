// SPDX-License-Identifier: Apache-2.0

package member

import (
	"crypto/x509"
	"fmt"
	"time"

	"fairlead.io/fairlead/cluster/pki"
)

// ending tells that a certificate ends, or has ended, and should have been renewed for half of the time that is there for that; nil before.
func ending(leaf *x509.Certificate, now time.Time) error {
	const remedy = "no member has renewed it: give one tls.caKey (`fairlead pki signer`), or issue it anew with `fairlead pki issue member`"
	_, window := pki.RenewFrom(leaf)
	switch end := leaf.NotAfter.UTC().Format(time.RFC3339); {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate of this member is over since %s; %s", end, remedy)
	case now.After(leaf.NotAfter.Add(-window / 2)):
		return fmt.Errorf("the certificate of this member ends at %s; %s", end, remedy)
	}
	return nil
}
