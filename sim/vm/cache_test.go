// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCacheKeepsTheProgramsThatWereUsedLast(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	program := func(i int) [sha256.Size]byte { return sha256.Sum256([]byte{byte(i)}) }
	use := func(i int) {
		t.Helper()
		c, err := openCache(dir, program(i))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range keptPrograms + 1 {
		use(i)
		name := filepath.Join(dir, hexOf(program(i)))
		used := time.Now().Add(time.Duration(i-100) * time.Hour)
		if err := os.Chtimes(name, used, used); err != nil {
			t.Fatal(err)
		}
		if i == keptPrograms-1 {
			use(0) // it is the newest now
		}
	}
	for i := range keptPrograms + 1 {
		_, err := os.Stat(filepath.Join(dir, hexOf(program(i))))
		if kept := err == nil; kept != (i != 1) {
			t.Errorf("program %d kept: %v", i, kept)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "note")); err != nil {
		t.Error("what is no compilation was removed:", err)
	}
}

func hexOf(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) }
