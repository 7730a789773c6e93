// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
)

// keptPrograms is of how many programs compilations are kept. One takes some 200 MB.
const keptPrograms = 6

// openCache opens the folder of one program's compilation within dir, and removes those that were not used for longest.
func openCache(dir string, sum [sha256.Size]byte) (wazero.CompilationCache, error) {
	own := filepath.Join(dir, hex.EncodeToString(sum[:]))
	if err := os.MkdirAll(own, 0o700); err != nil {
		return nil, err
	}
	now := time.Now() // of the machine that runs worlds
	if err := os.Chtimes(own, now, now); err != nil {
		return nil, err
	}
	if err := prune(dir); err != nil {
		return nil, err
	}
	return wazero.NewCompilationCacheWithDir(own)
}

// prune removes the folders of programs but those that were used last. What else is in dir stays.
func prune(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var folders []fs.FileInfo
	for _, e := range entries {
		sum, err := hex.DecodeString(e.Name())
		if err != nil || len(sum) != sha256.Size || !e.IsDir() {
			continue
		}
		info, err := e.Info()
		switch {
		case errors.Is(err, fs.ErrNotExist): // somebody else prunes
			continue
		case err != nil:
			return err
		}
		folders = append(folders, info)
	}
	slices.SortFunc(folders, func(a, b fs.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, old := range folders[min(keptPrograms, len(folders)):] {
		if err := os.RemoveAll(filepath.Join(dir, old.Name())); err != nil {
			return fmt.Errorf("remove an old compilation: %w", err)
		}
	}
	return nil
}
