// SPDX-License-Identifier: Apache-2.0

// Package appliedstate keeps what a speaker announced last in a file, beside the log of its owner: a member that comes
// back and finds no leader announces, behind all others, what it announced before.
//
// It knows the file's format and how to replace a file so that a crash leaves the old or the new one. It promises that
// what it loads is what was saved, by this group: anything else is refused, and the error says what to do. The file
// holds the passwords of peers and can be read by its owner only.
//
// Start reading at File.
package appliedstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fairlead.io/fairlead/dataplane/bgp"
)

// FileName is what the file is called in the data folder.
const FileName = "applied.state"

// File is the announced state of one group in one file. It implements bgp.Store.
type File struct {
	path  string
	group string
}

// In returns the file of the group in a data folder. group is the group's id.
func In(folder, group string) File { return File{filepath.Join(folder, FileName), group} }

var (
	// ErrCorrupt means that the file is not what was saved.
	ErrCorrupt = errors.New("corrupt")
	// ErrForeign means that another group saved the file.
	ErrForeign = errors.New("of another group")
)

// Load returns what was saved last, or nil if nothing ever was. Errors: ErrCorrupt, ErrForeign, those of reading.
func (f File) Load() (*bgp.Routes, error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("announced state: %w", err)
	}
	routes, err := decode(text, f.group)
	if err != nil {
		return nil, fmt.Errorf("announced state %s: %w (remove the file: the routes come again from the group)", f.path, err)
	}
	return &routes, nil
}

// Save replaces what was saved. After a crash at any moment the file is the old or the new one, whole.
func (f File) Save(r bgp.Routes) (err error) {
	text, err := encode(r, f.group)
	if err != nil {
		return fmt.Errorf("announced state: %w", err)
	}
	// For its owner only, since it holds passwords.
	tmp, err := os.OpenFile(f.path+".tmp", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("announced state: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name()) // the next one writes over it
			err = fmt.Errorf("announced state: %w", err)
		}
	}()
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), f.path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(f.path))
}

// syncFolder makes a rename last.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
