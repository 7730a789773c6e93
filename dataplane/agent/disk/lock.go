// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fairlead.io/fairlead/internal/filelock"
)

// Lock keeps a second process out of a folder, which is made if it is missing, for as long as this one lives or
// until the lock is closed.
func Lock(dir string) (io.Closer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep state in %s: %w; name a folder that may be written to", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep state in %s: %w; name a folder that may be written to", dir, err)
	}
	lock, err := filelock.Take(file)
	if err != nil {
		if errors.Is(err, filelock.ErrTaken) {
			err = fmt.Errorf("%w; stop it first", ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, errors.Join(err, file.Close()))
	}
	return lock, nil
}
