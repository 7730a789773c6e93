// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"path/filepath"
)

// Rotate makes a CA in a new folder that takes the place of the one in dir. Its ca.crt holds the new one first, then
// those of dir, so that whoever has that bundle trusts both. Nothing in dir changes.
//
// Errors: ErrExists; dir holds no CA; a file cannot be written.
func Rotate(dir, next string, opts CAOptions) error {
	old, err := openCA(dir)
	if err != nil {
		return err
	}
	if opts.Name == "" {
		if opts.Name, err = old.domain(); err != nil {
			return err
		}
	}
	if err := Init(next, opts); err != nil {
		return err
	}
	fresh, err := openCA(next)
	if err != nil {
		return err
	}
	return replace(filepath.Join(next, CAFile), bytes.Join([][]byte{bytes.TrimSpace(fresh.bundle), bytes.TrimSpace(old.bundle), nil}, []byte("\n")), 0o644)
}

// FinishRotation leaves only the CA whose key is in dir in its ca.crt, and tells how many it dropped. Whoever still
// has a certificate of another one is refused by those who have that bundle.
func FinishRotation(dir string) (dropped int, err error) {
	ca, err := openCA(dir)
	if err != nil {
		return 0, err
	}
	all, err := parseBundle(ca.bundle)
	if err != nil {
		return 0, fmt.Errorf("finish the rotation: %w", err)
	}
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
	return len(all) - 1, replace(filepath.Join(dir, CAFile), own, 0o644)
}
