// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// page is the file that a run is to be shown in; without a name there is none.
type page struct {
	name string
	file *os.File
	// aside tells that the file stands beside the name until it is whole.
	aside bool
}

// openPage finds out whether a page can be written, before an hour of runs. What has the name now stays until the page is
// whole.
func openPage(name string) (*page, error) {
	if name == "" {
		return &page{}, nil
	}
	info, err := os.Stat(name)
	folder := filepath.Dir(name)
	if parent, err := os.Stat(folder); err != nil || !parent.IsDir() {
		return nil, usagef("--html %s: there is no folder %s; make it, or name another file", name, folder)
	}
	p := &page{name: name}
	switch {
	case err == nil && info.IsDir():
		return nil, usagef("--html %s: it is a folder; name a file in it", name)
	case err == nil && !info.Mode().IsRegular(): // such as a pipe
		p.file, err = os.OpenFile(name, os.O_WRONLY, 0)
	default:
		p.aside = true
		p.file, err = os.CreateTemp(folder, "."+filepath.Base(name)+".*")
	}
	if err != nil {
		return nil, fmt.Errorf("--html %s: %s; name a file where one can be written", name, plainly(err))
	}
	return p, nil
}

// wanted tells whether there is one.
func (p *page) wanted() bool { return p.file != nil }

// write has the page written, wholly or not at all.
func (p *page) write(show func(io.Writer) error) error {
	if !p.wanted() {
		return nil
	}
	err := show(p.file)
	if end := p.file.Close(); err == nil {
		err = end
	}
	if p.aside && err == nil {
		err = os.Chmod(p.file.Name(), 0o644)
	}
	if p.aside && err == nil {
		err = os.Rename(p.file.Name(), p.name)
	}
	if err != nil {
		return fmt.Errorf("--html %s: it was not written: %s; make room, or name a file elsewhere", p.name, plainly(err))
	}
	p.file = nil
	return nil
}

// drop gives up a page that was not written.
func (p *page) drop() {
	if !p.wanted() {
		return
	}
	_ = p.file.Close()
	if p.aside {
		_ = os.Remove(p.file.Name())
	}
}

// plainly is an error without the name of the file, which is said already.
func plainly(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
