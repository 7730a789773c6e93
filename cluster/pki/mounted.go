// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"

	"fairlead.io/fairlead/internal/smallfile"
)

// mounted is a certificate that somebody else keeps renewed in a folder, such as a Secret of cert-manager. It is read again
// when its files have changed; while they do not fit together, the one before is in force.
type mounted struct {
	files Files
	log   *slog.Logger

	mu     sync.Mutex
	stamp  stamp // of the files that held came from
	failed stamp // of files that could not be used, so as to say so once
	held   *tls.Certificate
}

func mountedIn(folder string) Files {
	return Files{CA: filepath.Join(folder, CAFile), Cert: filepath.Join(folder, "tls.crt"), Key: filepath.Join(folder, "tls.key")}
}

// bundle is what came with the certificate, if anything.
func (m *mounted) bundle() ([]byte, error) {
	bundle, err := smallfile.Read(m.files.CA, smallfile.Most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return bundle, err
}

func (m *mounted) certificate() (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, err := stampOf(m.files.Cert, m.files.Key)
	if err == nil && m.held != nil && now.equal(m.stamp) {
		return m.held, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(m.files.Cert, m.files.Key)
	}
	switch {
	case err == nil:
		m.held, m.stamp, m.failed = &pair, now, stamp{}
		m.log.Info("certificate for admission read", "not_after", pair.Leaf.NotAfter)
	case m.held == nil:
		return nil, fmt.Errorf("certificate %s with key %s: %w; is it the folder that cert-manager fills?", m.files.Cert, m.files.Key, err)
	case !now.equal(m.failed):
		m.failed = now
		m.log.Error("certificate files not usable, keeping those read before", "err", err)
	}
	return m.held, nil
}
