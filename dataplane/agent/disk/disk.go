// SPDX-License-Identifier: Apache-2.0

// Package disk is where an agent meets the machine's files: the state that it keeps and the kernel's boot id.
//
// It promises that a saved file is whole or the one before it, also after a loss of power. Start reading at
// File.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// bootID is where Linux draws a new id at every boot (proc(5)).
const bootID = "/proc/sys/kernel/random/boot_id"

// LockName is the file that Lock makes.
const LockName = "lock"

// ErrLocked says that another process works with the folder.
var ErrLocked = errors.New("another process is running on it")

// BootID reads the kernel's boot id.
func BootID() (string, error) {
	data, err := os.ReadFile(bootID)
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w; mount /proc", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// File keeps one state in one file.
type File struct{ path string }

// Open prepares a file in a folder, which is made if it is missing. Errors: the folder cannot be written to.
func Open(dir, name string) (*File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep state in %s: %w; name a folder that may be written to", dir, err)
	}
	probe, err := os.CreateTemp(dir, name+".probe-*")
	if err != nil {
		return nil, fmt.Errorf("keep state in %s: %w; name a folder that may be written to", dir, err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("keep state in %s: %w", dir, err)
	}
	return &File{path: filepath.Join(dir, name)}, nil
}

// Load gives what was saved last, nil if nothing ever was.
func (f *File) Load() ([]byte, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return data, nil
}

// Save replaces the file at once: a reader, or a machine that lost power, sees the old data or the new.
func (f *File) Save(data []byte) error {
	next := f.path + ".next"
	if err := write(next, data); err != nil {
		return fmt.Errorf("keep state: %w; make room, or name another folder", errors.Join(err, removeIfThere(next)))
	}
	if err := os.Rename(next, f.path); err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	return syncDir(filepath.Dir(f.path))
}

func write(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes a rename last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	return nil
}
