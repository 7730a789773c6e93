// SPDX-License-Identifier: Apache-2.0

//go:build !wasip1

// Package filelock keeps other processes out by a file, with flock(2).
package filelock

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// ErrTaken says that another process has the lock.
var ErrTaken = errors.New("another process has the lock")

// Take takes the lock of an open file, until it is closed by what is returned, or this process ends, however it ends. Where it fails the
// file stays open. Errors: ErrTaken.
func Take(file *os.File) (io.Closer, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, ErrTaken
	case err != nil:
		return nil, err
	}
	return held{file}, nil
}

// held is a file whose lock is taken.
type held struct{ file *os.File }

// Close implements io.Closer. The lock is given back before the file is closed: a process that is forked at that moment has a copy of the file
// until it gets to its program, and with it the lock.
func (h held) Close() error {
	return errors.Join(syscall.Flock(int(h.file.Fd()), syscall.LOCK_UN), h.file.Close())
}
