// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"io"
	"os"
)

// spool is a backup on its way in, kept in a file that has no name any more.
type spool struct{ *os.File }

// spooled reads r to its end and gives it from the start.
func spooled(r io.Reader) (spool, error) {
	f, err := os.CreateTemp("", "fairlead-restore-")
	if err != nil {
		return spool{}, fmt.Errorf("restore: keep the backup for a moment: %w", err)
	}
	_ = os.Remove(f.Name()) // the open file stays until it is closed
	if _, err := io.Copy(f, r); err != nil {
		_ = f.Close()
		return spool{}, fmt.Errorf("restore: read the backup: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		_ = f.Close()
		return spool{}, fmt.Errorf("restore: read the backup again: %w", err)
	}
	return spool{f}, nil
}
