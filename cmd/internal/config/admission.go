// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net/netip"
	"regexp"
)

// Admission says how the API server's questions about objects of LBCF's kinds are answered.
type Admission struct {
	// Names are those by which the API server looks for members, and addresses. Empty means those of the Services in
	// deploy: fairlead-admission.kube-system.svc and, as LBCF has it, lbcf-controller.kube-system.svc.
	Names []string `yaml:"names"`
	// CertDir is a folder in which somebody else, such as cert-manager, keeps tls.crt, tls.key and perhaps ca.crt. Empty: the
	// group's own CA is used.
	CertDir string `yaml:"certDir"`
	// ClientCA is a file with the CA of the API server's certificate as a client of webhooks. Empty: callers show none.
	ClientCA string `yaml:"clientCA"`
	// ClientNames are the common names, or DNS names, of certificates of ClientCA that count. Empty: all do.
	ClientNames []string `yaml:"clientNames"`
	// DriverAway is what becomes of an object whose driver does not answer: fail refuses it, as LBCF does, and warn lets it
	// through with a warning. Empty means fail.
	DriverAway string `yaml:"driverAway"`
	// PolicyConflict has policies of client-side balancing judged, too, and says what becomes of one that captures what another
	// does: refuse, or warn. Empty: they are not judged.
	PolicyConflict string `yaml:"policyConflict"`
}

// Values of Admission.PolicyConflict.
const (
	PolicyConflictRefuse = "refuse"
	PolicyConflictWarn   = "warn"
)

// Values of Admission.DriverAway.
const (
	DriverAwayFail = "fail"
	DriverAwayWarn = "warn"
)

// dnsName is a subdomain of RFC 1123.
var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

func (c *Controller) validateAdmission(bad func(field, why string)) {
	a := &c.Admission
	if c.Listen.Admission == "" {
		if len(a.Names) > 0 || a.CertDir != "" || a.ClientCA != "" || len(a.ClientNames) > 0 || a.DriverAway != "" || a.PolicyConflict != "" {
			bad("admission", "nobody can ask for it; say where in listen.admission, such as \":7482\"")
		}
		return
	}
	if c.Sources.Kubernetes == nil {
		bad("listen.admission", "there is no cluster to judge objects for; name one in sources.kubernetes")
	}
	if len(a.Names) == 0 {
		a.Names = []string{"fairlead-admission.kube-system.svc", "lbcf-controller.kube-system.svc"}
	}
	for i, name := range a.Names {
		if _, err := netip.ParseAddr(name); err != nil && (!dnsName.MatchString(name) || len(name) > 253) {
			bad(fmt.Sprintf("admission.names[%d]", i), fmt.Sprintf("%q is neither a DNS name nor an address", name))
		}
	}
	if a.ClientCA == "" && len(a.ClientNames) > 0 {
		bad("admission.clientNames", "nobody is asked for a certificate; name the CA of the API server's in admission.clientCA")
	}
	switch a.DriverAway {
	case "":
		a.DriverAway = DriverAwayFail
	case DriverAwayFail, DriverAwayWarn:
	default:
		bad("admission.driverAway", fmt.Sprintf("%q is neither fail nor warn", a.DriverAway))
	}
	switch a.PolicyConflict {
	case "", PolicyConflictRefuse, PolicyConflictWarn:
	default:
		bad("admission.policyConflict", fmt.Sprintf("%q is neither refuse nor warn", a.PolicyConflict))
	}
}
