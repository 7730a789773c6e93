// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/mounttest"
)

// A certificate in a mounted Secret is kept fresh in the holder's own folder; the CAs stay the Secret's.
func TestCertificateInAReadOnlyFolderIsRenewedElsewhere(t *testing.T) {
	t.Parallel()
	ca, secret, own := newCA(t, pki.CAOptions{}), mounttest.Tmpfs(t, "1m"), filepath.Join(t.TempDir(), "own")
	give := func(ttl time.Duration) pki.Files {
		t.Helper()
		issued, err := pki.Issue(ca, pki.Request{Role: pki.Agent, Name: "n1", TTL: ttl})
		if err != nil {
			t.Fatal(err)
		}
		mounttest.Remount(t, secret, "1m", 0)
		files, err := issued.Write(secret)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	given := give(time.Hour)
	if same, err := given.Renewable(own); err != nil || same != given {
		t.Fatalf("a folder that can be written to is left: %+v, %v", same, err)
	}
	mounttest.Remount(t, secret, "1m", syscall.MS_RDONLY)
	kept, err := given.Renewable(own)
	if err != nil || kept.CA != given.CA || filepath.Dir(kept.Cert) != own {
		t.Fatalf("kept in %+v, %v", kept, err)
	}
	left := func(f pki.Files) time.Duration {
		t.Helper()
		return time.Until(pkitest.Open(t, f).Material().Certificate.Leaf.NotAfter).Round(time.Hour)
	}
	if l := left(kept); l != time.Hour {
		t.Errorf("copied one for %v", l)
	}
	install := func(by *pki.Authority) error {
		csr, key := request(t)
		signed, err := by.Sign(csr, pki.Request{Role: pki.Agent, Name: "n1", TTL: 5 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		return kept.Install(signed.Cert, key, append(signed.CA, signed.CA...)) // not what is there
	}
	_, signer := newSigner(t, ca, pki.CAOptions{})
	for name, by := range map[string]*pki.Authority{"CA": authority(t, ca), "signer": signer} {
		if err := install(by); err != nil {
			t.Fatalf("by the %s: %v", name, err)
		}
	}
	if err := install(authority(t, newCA(t, pki.CAOptions{}))); err == nil {
		t.Error("a certificate was installed that the CAs do not know")
	}
	if kept, err = given.Renewable(own); err != nil || left(kept) != 5*time.Hour {
		t.Errorf("after a restart: %v, %v", left(kept), err)
	}
	give(9 * time.Hour)
	mounttest.Remount(t, secret, "1m", syscall.MS_RDONLY)
	if kept, err = given.Renewable(own); err != nil || left(kept) != 9*time.Hour {
		t.Errorf("given anew: %v, %v", left(kept), err)
	}
	if info, err := os.Stat(kept.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info, err)
	}
}
