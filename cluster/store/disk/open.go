// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

package disk

import (
	"errors"
	"io"
	"os"

	"fairlead.io/fairlead/internal/filelock"
)

// Open is OpenWith over bbolt and flock(2).
func Open(path, name string) (*Folder, error) {
	return OpenWith(path, name, Options{Lock: lock, MakeLog: createLog, OpenLog: openLog, Chmod: os.Chmod})
}

// lock is free again once the process has ended, however it ends.
func lock(file *os.File) (io.Closer, error) {
	held, err := filelock.Take(file)
	if errors.Is(err, filelock.ErrTaken) {
		return nil, ErrLocked
	}
	return held, err
}
