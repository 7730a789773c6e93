// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
)

const admissionName = "lbcf-controller.kube-system.svc"

// meet has a client that trusts a bundle shake hands with a server, and gives the server's certificate.
func meet(t *testing.T, s *pki.Serving, bundle []byte, name string, now time.Time) (*x509.Certificate, error) {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("no CA in the bundle")
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_ = c.(*tls.Conn).Handshake() // the client tells how it went
			_ = c.Close()
		}
	}()
	plain, err := net.DialTimeout("tcp", l.Addr().String(), patience)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	client := tls.Client(plain, &tls.Config{RootCAs: roots, ServerName: name, Time: func() time.Time { return now }})
	if err := client.HandshakeContext(t.Context()); err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates[0], nil
}

func bundleOf(t *testing.T, s *pki.Serving) []byte {
	t.Helper()
	bundle, err := s.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

// signer is a CA in a new folder, with its key at hand.
func signer(t *testing.T) (ca string, a *pki.Authority, files pki.Files) {
	t.Helper()
	ca = newCA(t, pki.CAOptions{})
	files = issue(t, ca, pki.Request{Role: pki.Member, Name: "m1"})
	files.CA = filepath.Join(ca, pki.CAFile)
	a, err := pki.OpenAuthority(files.CA, filepath.Join(ca, pki.CAKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	return ca, a, files
}

func TestServingRenewsItselfAndIsTrustedByTheBundleAllAlong(t *testing.T) {
	t.Parallel()
	_, a, files := signer(t)
	now := time.Now()
	s, err := pki.OpenServing(pki.ServingOptions{
		Names: []string{admissionName, "192.0.2.11"}, Files: files, Authority: a, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	bundle := bundleOf(t, s)
	serials, ends := map[string]bool{}, now
	for begun := now; now.Before(begun.Add(10 * 24 * time.Hour)); now = now.Add(time.Hour) {
		c, err := meet(t, s, bundle, admissionName, now)
		if err != nil {
			t.Fatalf("after %v: %v", now.Sub(begun), err)
		}
		if left := c.NotAfter.Sub(now); left < 7*time.Hour {
			t.Errorf("%v left: a clock that is behind, or one member that is, would see it end", left)
		}
		serials[c.SerialNumber.String()], ends = true, c.NotAfter
	}
	if len(serials) < 14 || len(serials) > 16 { // every sixteen hours
		t.Errorf("%d certificates in ten days, the last one until %v", len(serials), ends)
	}
	if _, err := meet(t, s, bundle, "fairlead.io", now); err == nil {
		t.Error("it is good at any name")
	}
}

// What serves the API server must not speak for a member, nor call one.
func TestServingProvesNothingToMembers(t *testing.T) {
	t.Parallel()
	_, a, files := signer(t)
	s, err := pki.OpenServing(pki.ServingOptions{Names: []string{admissionName}, Files: files, Authority: a, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c, err := meet(t, s, bundleOf(t, s), admissionName, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if id, err := pki.Identify(c); err == nil {
		t.Errorf("it is %s", id)
	}
	roots, err := pki.ReadRoots(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err == nil {
		t.Error("it is good for clients")
	}
}

func TestServingFollowsAnotherCAWithinAMinute(t *testing.T) {
	t.Parallel()
	ca, a, files := signer(t)
	now := time.Now()
	s, err := pki.OpenServing(pki.ServingOptions{Names: []string{admissionName}, Files: files, Authority: a, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(t.TempDir(), "next")
	if err := pki.Rotate(ca, next, pki.CAOptions{}); err != nil {
		t.Fatal(err)
	}
	copyFile(t, filepath.Join(next, pki.CAFile), files.CA)
	copyFile(t, filepath.Join(next, pki.CAKeyFile), filepath.Join(ca, pki.CAKeyFile))
	now = now.Add(time.Minute)
	both := bundleOf(t, s)
	if _, err := meet(t, s, both, admissionName, now); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.FinishRotation(ca); err != nil {
		t.Fatal(err)
	}
	if _, err := meet(t, s, bundleOf(t, s), admissionName, now); err != nil {
		t.Errorf("the new CA alone does not vouch for it: %v", err)
	}
	// A CA that cannot be read does not end what is in force.
	if err := os.Remove(files.CA); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if _, err := meet(t, s, both, admissionName, now); err != nil {
		t.Error(err)
	}
}

// A member without the CA's key shows its own certificate, if that is good at the names.
func TestServingWithoutTheCAsKeyNeedsTheNamesInTheMembersCertificate(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	files := issue(t, ca, pki.Request{Role: pki.Member, Name: "m1", Hosts: []string{"192.0.2.11", admissionName}})
	o := pki.ServingOptions{Names: []string{admissionName}, Files: files, Source: pkitest.Open(t, files), Log: slog.New(slog.DiscardHandler)}
	s, err := pki.OpenServing(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := meet(t, s, bundleOf(t, s), admissionName, time.Now()); err != nil {
		t.Error(err)
	}
	o.Names = append(o.Names, "fairlead-admission.kube-system.svc")
	if _, err := pki.OpenServing(o); err == nil || !strings.Contains(err.Error(), "--host fairlead-admission.kube-system.svc") {
		t.Errorf("a name that the certificate lacks: %v", err)
	}
}

// As cert-manager keeps it: files that change under us, one by one.
func TestServingFromAFolderIsReadAgainWhenItsFilesChange(t *testing.T) {
	t.Parallel()
	ca := newCA(t, pki.CAOptions{})
	folder := t.TempDir()
	put := func(f pki.Files, parts ...string) {
		for _, part := range parts {
			copyFile(t, map[string]string{"tls.crt": f.Cert, "tls.key": f.Key, "ca.crt": f.CA}[part], filepath.Join(folder, part))
		}
	}
	hosts := []string{admissionName}
	first := issue(t, ca, pki.Request{Role: pki.Member, Name: "a", Hosts: hosts})
	second := issue(t, ca, pki.Request{Role: pki.Member, Name: "b", Hosts: hosts})
	o := pki.ServingOptions{Names: hosts, Folder: folder, Log: slog.New(slog.DiscardHandler)}
	if _, err := pki.OpenServing(o); err == nil || !strings.Contains(err.Error(), "tls.crt") {
		t.Fatalf("an empty folder: %v", err)
	}
	put(first, "tls.crt", "tls.key")
	s, err := pki.OpenServing(o)
	if err != nil {
		t.Fatal(err)
	}
	if bundle := bundleOf(t, s); len(bundle) != 0 {
		t.Errorf("a bundle out of nowhere: %s", bundle)
	}
	put(first, "ca.crt")
	shown := func() string {
		t.Helper()
		c, err := meet(t, s, bundleOf(t, s), admissionName, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return c.Subject.CommonName
	}
	if got := shown(); got != "a" {
		t.Errorf("shows %s", got)
	}
	put(second, "tls.key")
	if got := shown(); got != "a" {
		t.Errorf("between two files it shows %s", got)
	}
	put(second, "tls.crt")
	if got := shown(); got != "b" {
		t.Errorf("renewed, it shows %s", got)
	}
}
