// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MemoryFile is where, in the folder, it is kept what settings were.
const MemoryFile = "steer.json"

// memory is what was there before we changed it. It is of one boot of the machine: the next starts with its own.
type memory struct {
	Boot     string            `json:"boot"`
	Settings []changedSetting  `json:"settings"`
	Defaults map[string][]byte `json:"defaults"` // by family: the route as the kernel tells it
}

type changedSetting struct {
	Setting
	Before string `json:"before"`
	After  string `json:"after"`
}

// loadMemory reads what an earlier agent wrote in this boot.
func loadMemory(folder, boot string) (memory, error) {
	m := memory{Boot: boot, Defaults: map[string][]byte{}}
	data, err := os.ReadFile(filepath.Join(folder, MemoryFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err != nil {
		return m, fmt.Errorf("read what settings were: %w", err)
	}
	var kept memory
	if err := json.Unmarshal(data, &kept); err != nil {
		return m, fmt.Errorf("read what settings were: %s is damaged: %w; put the interfaces' settings and the default route back by hand, and delete it",
			filepath.Join(folder, MemoryFile), err)
	}
	if kept.Boot != boot {
		return m, nil
	}
	if kept.Defaults == nil {
		kept.Defaults = m.Defaults
	}
	return kept, nil
}

// save replaces the file; with nothing to remember it removes it. What save returns without error survives a crash.
func (m memory) save(folder string) error {
	name := filepath.Join(folder, MemoryFile)
	if len(m.Settings) == 0 && len(m.Defaults) == 0 {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("forget what settings were: %w", err)
		}
		return nil
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("keep what settings were: %w", err)
	}
	f, err := os.CreateTemp(folder, MemoryFile+".*")
	if err != nil {
		return fmt.Errorf("keep what settings were: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error tells more
		return fmt.Errorf("keep what settings were: %w", err)
	}
	return nil
}

// find gives the index of a setting, or -1.
func (m memory) find(s Setting) int {
	for i, c := range m.Settings {
		if c.Setting == s {
			return i
		}
	}
	return -1
}
