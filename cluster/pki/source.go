// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"fairlead.io/fairlead/internal/smallfile"
)

// Files says where somebody's certificate is.
type Files struct {
	CA   string // bundle of the CAs that are trusted; several while one replaces another
	Cert string
	Key  string
}

func (f Files) paths() [3]string { return [3]string{f.CA, f.Cert, f.Key} }

// Material is what the files held at one time.
type Material struct {
	Identity    Identity
	Certificate tls.Certificate // with Leaf
	Roots       *x509.CertPool
}

// Source reads certificate files, and reads them again when they have changed. Whether they did is found by
// stat when the material is asked for, that is on each handshake: nothing is watched, and nothing runs.
type Source struct {
	files Files
	log   *slog.Logger

	mu       sync.Mutex
	stamp    stamp // of the files that material came from
	failed   stamp // of the files that could not be used, so as to say so once
	material *Material
}

type stamp [3]fs.FileInfo

func (s stamp) equal(other stamp) bool {
	for i := range s {
		a, b := s[i], other[i]
		if a == nil || b == nil {
			if a != b {
				return false
			}
			continue
		}
		if a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) || !os.SameFile(a, b) {
			return false
		}
	}
	return true
}

// OpenSource reads the files for the first time. Unlike later, they must be in order now.
func OpenSource(files Files, log *slog.Logger) (*Source, error) {
	s := &Source{files: files, log: log}
	if err := files.mend(); err != nil {
		return nil, err
	}
	s.stamp, _ = s.stat()
	material, err := load(files)
	if err != nil {
		return nil, err
	}
	s.material = material
	return s, nil
}

// OpenTrusted is OpenSource for whoever is about to start with the files: they are refused where none of the CAs signed the certificate, since nobody who
// trusts the same CAs would take it. One that is over has to be renewed whoever signed it, and may be. A CA that is taken out of the file later counts no more at once, whatever it signed.
func OpenTrusted(files Files, log *slog.Logger) (*Source, error) {
	s, err := OpenSource(files, log)
	if err != nil {
		return nil, err
	}
	over := time.Now().After(s.material.Certificate.Leaf.NotAfter)
	if !over && signedBy(s.material.Roots, &s.material.Certificate) != nil {
		return nil, fmt.Errorf("certificate %s of %s: none of the CAs in %s signed it, but another one that is called %q: nobody in the group would take it; "+
			"name the ca.crt of that CA, or issue it anew with `fairlead pki issue` by this one", files.Cert, s.material.Identity, files.CA, s.material.Certificate.Leaf.Issuer.CommonName)
	}
	return s, nil
}

// Material gives what the files hold, or held when they were last in order: while somebody replaces them one
// by one they do not fit together, and the old ones go on being used.
func (s *Source) Material() *Material {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.stat()
	if err == nil && now.equal(s.stamp) {
		return s.material
	}
	var material *Material
	if err == nil {
		material, err = load(s.files)
	}
	if err != nil {
		if !now.equal(s.failed) {
			s.failed = now
			s.log.Error("certificate files not usable, keeping those read before", "err", err)
		}
		return s.material
	}
	if material.Identity != s.material.Identity {
		s.log.Warn("certificate has another identity now", "was", s.material.Identity.String(), "identity", material.Identity.String())
	}
	s.stamp, s.failed, s.material = now, stamp{}, material
	s.log.Info("certificate files read again", "identity", material.Identity.String(), "not_after", material.Certificate.Leaf.NotAfter)
	return material
}

func (s *Source) stat() (stamp, error) {
	paths := s.files.paths()
	return stampOf(paths[:]...)
}

// stampOf looks at three files at most.
func stampOf(paths ...string) (stamp, error) {
	var result stamp
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return stamp{}, fmt.Errorf("certificate files: %w", err)
		}
		result[i] = info
	}
	return result, nil
}

func load(files Files) (*Material, error) {
	const remedy = "issue it anew with `fairlead pki issue`"
	bundle, err := smallfile.Read(files.CA, smallfile.Most)
	if err != nil {
		return nil, fmt.Errorf("CA certificates: %w; name the ca.crt that `fairlead pki` wrote", err)
	}
	cas, err := parseBundle(bundle)
	if err != nil {
		return nil, fmt.Errorf("CA certificates %s: %w; name the ca.crt that `fairlead pki` wrote", files.CA, err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w; %s", files.Cert, files.Key, err, remedy)
	}
	id, err := Identify(pair.Leaf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %s", files.Cert, err, remedy)
	}
	return &Material{Identity: id, Certificate: pair, Roots: poolOf(cas)}, nil
}

// signedBy tells whether one of some CAs signed a certificate, itself or by a signer whose certificate is beside it. It is looked
// at as of its last second.
func signedBy(roots *x509.CertPool, pair *tls.Certificate) error {
	between := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if signer, err := x509.ParseCertificate(der); err == nil {
			between.AddCert(signer)
		}
	}
	_, err := pair.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: pair.Leaf.NotAfter, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return err
	}
	return nil
}
