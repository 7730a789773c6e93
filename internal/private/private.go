// SPDX-License-Identifier: Apache-2.0

// Package private keeps what a process writes from other users of its machine, also what was written before that was so.
//
// It knows files, and nothing of what is in them. Start reading at Narrow.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// others are the rights of those who are not the owner.
const others fs.FileMode = 0o077

// Narrow takes the rights of group and others from a folder and from all files and folders in it, and gives the paths of those
// that were open to them. With names it does so with those entries of the folder alone, and with the folder if it holds nothing
// else: what else is there is somebody else's. Certificates (*.crt) are for everybody and stay as they are; links are not followed.
//
// Errors: some could not be looked at or changed, such as those of another owner; the others have been.
func Narrow(dir string, names ...string) (wider []string, err error) {
	n := narrowing{}
	if len(names) == 0 || holdsOnly(dir, names) {
		n.walk(dir)
		return n.wider, errors.Join(n.errs...)
	}
	for _, name := range names {
		n.walk(filepath.Join(dir, name))
	}
	return n.wider, errors.Join(n.errs...)
}

func holdsOnly(dir string, names []string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !slices.Contains(names, e.Name()) })
}

// narrowing is what Narrow has done.
type narrowing struct {
	wider []string
	errs  []error
}

func (n *narrowing) walk(root string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error { // it gives back what this function does
		if err == nil && Wide(d) {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				err = os.Chmod(path, info.Mode()&^others) // the folder first: nobody puts a link into its place then
			}
			if err == nil {
				n.wider = append(n.wider, path)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // it may have gone meanwhile
			n.errs = append(n.errs, fmt.Errorf("keep files from others: %w; have the user that runs this process own them", err))
		}
		return nil
	})
}

// Wide tells whether something is open to others that shall not be.
func Wide(d fs.DirEntry) bool {
	if !d.IsDir() && (!d.Type().IsRegular() || strings.HasSuffix(d.Name(), ".crt")) {
		return false
	}
	info, err := d.Info()
	return err == nil && info.Mode()&others != 0
}
