// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"os"
	"path/filepath"
)

// Tree is a folder of source and what is to change in its files.
type Tree struct {
	root  string
	files map[string]*File
}

// In takes a folder, of which nothing is read yet.
func In(root string) *Tree { return &Tree{root: root, files: map[string]*File{}} }

// Take finds the places of patches. Errors name whose they are.
func (t *Tree) Take(by string, patches []Patch) error {
	for i := range patches {
		p := &patches[i]
		if t.files[p.File] == nil {
			text, err := os.ReadFile(filepath.Join(t.root, p.File))
			if err != nil {
				return fmt.Errorf("%s no longer applies: %w", by, err)
			}
			t.files[p.File] = NewFile(p.File, string(text))
		}
		if err := t.files[p.File].Take(by, p); err != nil {
			return err
		}
	}
	return nil
}

// Files are those that change, by their names in the folder.
func (t *Tree) Files() map[string]*File { return t.files }
