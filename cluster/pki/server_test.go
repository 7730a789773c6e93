// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
)

// The extended key usage keeps others from serving as well; this holds for certificates that Issue did not make.
func TestOnlyMembersPassAsServers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Init(dir, CAOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, role := range Roles() {
		req := Request{Role: role, Name: "x"}
		if role == Member {
			req.Hosts = []string{"192.0.2.1"}
		}
		issued, err := Issue(dir, req)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(issued.Cert)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkServer(cert, "192.0.2.1:7443"); (err == nil) != (role == Member) {
			t.Errorf("%s as server: %v", role, err)
		}
		cert.URIs = nil
		if err := checkServer(cert, "192.0.2.1:7443"); err == nil {
			t.Errorf("%s without a name passes as server", role)
		}
	}
}
