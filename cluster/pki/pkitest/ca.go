// SPDX-License-Identifier: Apache-2.0

// Package pkitest gives tests a CA and certificates of it, in folders that go when the test ends.
package pkitest

import (
	"log/slog"
	"path/filepath"
	"testing"

	"fairlead.io/fairlead/cluster/pki"
)

// CA is the folder of a CA.
type CA string

// New makes a CA.
func New(t testing.TB) CA {
	t.Helper()
	ca := CA(filepath.Join(t.TempDir(), "ca"))
	if err := pki.Init(string(ca), pki.CAOptions{}); err != nil {
		t.Fatal(err)
	}
	return ca
}

// Cert is the file that all know it by.
func (ca CA) Cert() string { return filepath.Join(string(ca), pki.CAFile) }

// Key is the file of its key.
func (ca CA) Key() string { return filepath.Join(string(ca), pki.CAKeyFile) }

// Authority is one with its key.
func (ca CA) Authority(t testing.TB) *pki.Authority {
	t.Helper()
	a, err := pki.OpenAuthority(ca.Cert(), ca.Key())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Issue makes a certificate in a new folder. Members of whom no host is named answer on loopback.
func (ca CA) Issue(t testing.TB, req pki.Request) pki.Files {
	t.Helper()
	if req.Role == pki.Member && req.Hosts == nil {
		req.Hosts = []string{"127.0.0.1"}
	}
	issued, err := pki.Issue(string(ca), req)
	if err != nil {
		t.Fatal(err)
	}
	files, err := issued.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Source is Issue of one that is in use.
func (ca CA) Source(t testing.TB, req pki.Request) *pki.Source {
	t.Helper()
	return Open(t, ca.Issue(t, req))
}

// Open takes a certificate into use.
func Open(t testing.TB, files pki.Files) *pki.Source {
	t.Helper()
	source, err := pki.OpenSource(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return source
}
