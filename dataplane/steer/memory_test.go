// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestMemoryIsOfOneBootAndGoesWhenEmpty(t *testing.T) {
	folder := t.TempDir()
	m, err := loadMemory(folder, "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	m.Settings = []changedSetting{{Setting: Setting{"eth0", arpIgnore}, Before: "0", After: "1"}}
	m.Defaults["IPv4"] = []byte{1, 2, 3}
	if err := m.save(folder); err != nil {
		t.Fatal(err)
	}
	same, err := loadMemory(folder, "boot-1")
	if err != nil || !reflect.DeepEqual(same, m) {
		t.Errorf("%+v came back as %+v, %v", m, same, err)
	}
	next, err := loadMemory(folder, "boot-2")
	if err != nil || len(next.Settings)+len(next.Defaults) > 0 {
		t.Errorf("another boot has %+v, %v", next, err)
	}
	if err := next.save(folder); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestDamagedMemoryIsNotTakenForNone(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, MemoryFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadMemory(folder, "boot"); err == nil || !strings.Contains(err.Error(), "steer.json is damaged") {
		t.Errorf("error: %v", err)
	}
}
