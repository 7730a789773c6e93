// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"os"
	"path/filepath"
	"testing"
)

// In a container the settings that may be written are at another place than the process's own.
func TestSettingsAreReadAndWrittenWhereToldTo(t *testing.T) {
	s := Setting{"eth0", rpFilter}
	host := t.TempDir()
	path := filepath.Join(host, s.Path())
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	k := &linux{o: Options{Folder: t.TempDir(), SysNet: host}}
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"set", func() error { return k.set(map[Setting]string{s: "2"}) }, "2"},
		{"restore", func() error { return k.restore([]Setting{s}) }, "1"},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != step.want {
			t.Errorf("after %s: %q, %v", step.name, got, err)
		}
	}
}
