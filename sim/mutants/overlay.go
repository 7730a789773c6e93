// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// wiring has the program choose when it starts.
//
//go:embed start.patch
var wiring string

// older is what the release before this one did.
//
//go:embed releases/older.patch
var older string

// Sources are the files that differ in the program of simulated processes from the source, by their names from the root
// of it, with their whole texts: all bugs given are in them, and in any case the release before this one, which a process
// plays when its start.Process.Release says so. It knows format 1 of the record only.
func Sources(root string, all []Mutant) (map[string]string, error) {
	files := map[string]*file{}
	take := func(by string, patches []Patch) error {
		for i := range patches {
			p := &patches[i]
			f := files[p.File]
			if f == nil {
				text, err := os.ReadFile(filepath.Join(root, p.File))
				if err != nil {
					return fmt.Errorf("%s no longer applies: %w", by, err)
				}
				f = newFile(p.File, string(text))
				files[p.File] = f
			}
			if err := f.take(by, p); err != nil {
				return err
			}
		}
		return nil
	}
	for _, fixed := range []struct{ by, text string }{{"the start of the program", wiring}, {"the older release", older}} {
		_, body := cutPatches(fixed.text)
		patches, err := parsePatches(body)
		if err == nil {
			err = take(fixed.by, patches)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, m := range all {
		if err := take("planted bug "+m.Name, m.Patches); err != nil {
			return nil, err
		}
	}
	out := map[string]string{}
	for name, f := range files {
		text, err := f.text()
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

// Overlay writes what differs to a folder and gives the file that `go build -overlay` takes, and program.Options. The
// root is that of the source. Without bugs it is the overlay of the program that everybody runs.
func Overlay(root, folder string, all []Mutant) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("find the source: %w", err)
	}
	sources, err := Sources(root, all)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range sources {
		to := filepath.Join(folder, strings.ReplaceAll(name, "/", "+"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write the source with planted bugs: %w", err)
		}
		replace[filepath.Join(root, name)] = to
	}
	plan, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	to := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(to, plan, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return to, nil
}
