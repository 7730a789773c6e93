// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"fairlead.io/fairlead/internal/smallfile"
)

// Renewable gives the files in which a certificate is kept fresh: f itself where it can be replaced, else copies of the
// certificate and its key in dir, which is made. There the CAs stay those of f, which are somebody else's to replace, as
// those of a mounted Secret are. A copy of the same holder that lasts longer than f's is kept: it was renewed.
//
// Errors: f cannot be read, or dir cannot be written to.
func (f Files) Renewable(dir string) (Files, error) {
	if writable(filepath.Dir(f.Cert)) && writable(filepath.Dir(f.Key)) {
		return f, nil
	}
	given, err := load(f)
	if err != nil {
		return Files{}, err
	}
	own := Files{CA: f.CA, Cert: filepath.Join(dir, filepath.Base(f.Cert)), Key: filepath.Join(dir, filepath.Base(f.Key))}
	if err := own.mend(); err != nil {
		return Files{}, err
	}
	kept, err := load(own)
	if err == nil && kept.Identity == given.Identity && kept.Certificate.Leaf.NotAfter.After(given.Certificate.Leaf.NotAfter) {
		return own, nil
	}
	var pair [2][]byte
	for i, path := range []string{f.Cert, f.Key} {
		if pair[i], err = smallfile.Read(path, smallfile.Most); err != nil {
			return Files{}, fmt.Errorf("certificate files: %w", err)
		}
	}
	if _, err := tls.X509KeyPair(pair[0], pair[1]); err != nil {
		return Files{}, fmt.Errorf("certificate files: %w; they changed just now", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Files{}, fmt.Errorf("keep the certificate: %w", err)
	}
	return own, errors.Join(replace(own.Key, pair[1], 0o600), replace(own.Cert, pair[0], 0o644))
}

// writable tells whether files in a folder can be replaced.
func writable(dir string) bool {
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return false
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name())) == nil
}

// unwritable tells whether an error says that a file is somebody else's to replace.
func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
