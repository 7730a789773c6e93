// SPDX-License-Identifier: Apache-2.0

package smallfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairlead.io/fairlead/internal/smallfile"
)

func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, err := smallfile.Read(path, 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for text, fits := range map[string]bool{"": true, "four": true, "fives": false} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		data, err := smallfile.Read(path, 4)
		if (err == nil) != fits || fits && string(data) != text {
			t.Errorf("%q: %q, %v", text, data, err)
		}
	}
	if _, err := smallfile.Read("/dev/zero", smallfile.Most); err == nil || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("a file without an end: %v", err)
	}
}
