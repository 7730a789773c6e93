// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts files into a folder of their own. It overwrites nothing: a folder that holds anything is refused.
func Write(dir string, files []File) error {
	switch entries, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("folder %s: cannot be read: %w", dir, err)
	case len(entries) > 0:
		return fmt.Errorf("folder %s: is not empty; name another one with --out, or move what is there away", dir)
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("make the folder of %s: %w", path, err)
		}
		mode := fs.FileMode(0o644)
		if f.Secret {
			mode = 0o600
		}
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		if _, err = out.Write(f.Content); err == nil {
			err = out.Close()
		} else {
			_ = out.Close() // the write's error tells more
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	return nil
}
