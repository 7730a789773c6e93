// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fairlead.io/fairlead/internal/smallfile"
)

// nextSuffix is of files that are about to take the place of others.
const nextSuffix = ".next"

// step is a file that is about to be replaced.
type step struct {
	path string
	data []byte
	mode fs.FileMode
}

// Install puts a new certificate, its key and the CAs in the place of the old ones, as one: whoever reads in between
// keeps the old ones (see Source), and after a crash in between OpenSource ends what was begun. The files' folders are
// made if they are missing. CAs that are somebody else's to replace stay if they vouch for the new certificate.
//
// Errors: certificate and key do not fit together or are no identity; a file cannot be written. Then the old ones are
// still there.
func (f Files) Install(cert, key, ca []byte) error {
	if err := usable(cert, key, ca); err != nil {
		return fmt.Errorf("install certificate %s: %w", f.Cert, err)
	}
	// CAs first: the new certificate may need them. The pair is broken between the last two only, see mend.
	steps := []step{{f.CA, ca, 0o644}, {f.Key, key, 0o600}, {f.Cert, cert, 0o644}}
	for i, s := range steps {
		err := os.MkdirAll(filepath.Dir(s.path), 0o700)
		if err == nil {
			err = replace(s.path+nextSuffix, s.data, s.mode)
		}
		if i == 0 && unwritable(err) && f.vouchFor(cert) {
			steps[i].path = ""
			continue
		}
		if err != nil {
			return fmt.Errorf("install certificate: %w; the files must be writable to be renewed", err)
		}
	}
	for _, s := range steps {
		if s.path == "" {
			continue
		}
		if err := os.Rename(s.path+nextSuffix, s.path); err != nil {
			return fmt.Errorf("install certificate: %w", err)
		}
	}
	return nil
}

// vouchFor tells whether the CAs that are there know a certificate (PEM, with that of its signer).
func (f Files) vouchFor(cert []byte) bool {
	roots, err := ReadRoots(f.CA)
	if err != nil {
		return false
	}
	chain, err := parseChain(cert)
	if err != nil || len(chain) == 0 {
		return false
	}
	_, err = chain[0].Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: intermediatesOf(chain), CurrentTime: chain[0].NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err == nil
}

func usable(cert, key, ca []byte) error {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	if _, err := Identify(pair.Leaf); err != nil {
		return err
	}
	_, err = parseBundle(ca)
	return err
}

// mend ends an Install that a crash cut short: the new key is there, its certificate waits.
func (f Files) mend() error {
	waiting, err := smallfile.Read(f.Cert+nextSuffix, smallfile.Most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var key, cert []byte
	if err == nil {
		key, err = smallfile.Read(f.Key, smallfile.Most)
	}
	if err == nil {
		cert, err = smallfile.Read(f.Cert, smallfile.Most)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("certificate files: %w", err)
	}
	if _, err := tls.X509KeyPair(cert, key); err == nil {
		return nil
	}
	if _, err := tls.X509KeyPair(waiting, key); err != nil {
		return nil // not ours to mend; reading them will say what is wrong
	}
	if err := os.Rename(f.Cert+nextSuffix, f.Cert); err != nil {
		return fmt.Errorf("certificate files: %w", err)
	}
	return nil
}
