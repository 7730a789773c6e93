// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairlead.io/fairlead/internal/netns"
)

// readSettings reads the settings of interfaces, and of those that were changed.
func (k *linux) readSettings(interfaces []string, v *View) {
	clear(v.Settings)
	clear(v.Changed)
	_ = netns.Do(k.o.Namespace, func() error { // each setting that cannot be read is missing in the view
		for _, i := range append(slices.Clone(interfaces), "all") {
			for _, name := range []string{arpIgnore, rpFilter, srcValidMark} {
				k.readSetting(Setting{i, name}, v)
			}
		}
		for _, c := range k.memory.Settings {
			k.readSetting(c.Setting, v)
		}
		return nil
	})
	for _, c := range k.memory.Settings {
		v.Changed[c.Setting] = c.Before
	}
}

func (k *linux) readSetting(s Setting, v *View) {
	if text, err := os.ReadFile(filepath.Join(k.o.SysNet, s.Path())); err == nil {
		v.Settings[s] = strings.TrimSpace(string(text))
	}
}

// set changes settings. What they were is on disk before.
func (k *linux) set(values map[Setting]string) error {
	return netns.Do(k.o.Namespace, func() error {
		now := View{Settings: map[Setting]string{}}
		for s, value := range values {
			k.readSetting(s, &now)
			if _, there := now.Settings[s]; !there {
				continue // the interface has just gone
			}
			if i := k.memory.find(s); i >= 0 {
				k.memory.Settings[i].After = value
				continue
			}
			k.memory.Settings = append(k.memory.Settings, changedSetting{Setting: s, Before: now.Settings[s], After: value})
		}
		slices.SortFunc(k.memory.Settings, func(a, b changedSetting) int { return strings.Compare(a.Path(), b.Path()) })
		if err := k.memory.save(k.o.Folder); err != nil {
			return err
		}
		for s, value := range values {
			if err := k.write(s, value); err != nil {
				return err
			}
		}
		return nil
	})
}

// restore puts settings back that are as we left them, and forgets what they were.
func (k *linux) restore(settings []Setting) error {
	return netns.Do(k.o.Namespace, func() error {
		for _, s := range settings {
			i := k.memory.find(s)
			if i < 0 {
				continue
			}
			c := k.memory.Settings[i]
			now := View{Settings: map[Setting]string{}}
			k.readSetting(s, &now)
			if now.Settings[s] == c.After {
				if err := k.write(s, c.Before); err != nil {
					return err
				}
			}
			k.memory.Settings = slices.Delete(k.memory.Settings, i, i+1)
		}
		return k.memory.save(k.o.Folder)
	})
}

// write writes a setting; that of an interface which has gone needs none.
func (k *linux) write(s Setting, value string) error {
	err := os.WriteFile(filepath.Join(k.o.SysNet, s.Path()), []byte(value), 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
