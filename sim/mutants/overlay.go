// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fairlead.io/fairlead/sim/patch"
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
	tree := patch.In(root)
	for _, fixed := range []struct{ by, text string }{{"the start of the program", wiring}, {"the older release", older}} {
		_, body := patch.Cut(fixed.text)
		patches, err := patch.Parse(body)
		if err == nil {
			err = tree.Take(fixed.by, patches)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, m := range all {
		if err := tree.Take("planted bug "+m.Name, m.Patches); err != nil {
			return nil, err
		}
	}
	out := map[string]string{}
	for name, f := range tree.Files() {
		text, err := withImports(name, f)
		if err != nil {
			return nil, err
		}
		out[name] = text
	}
	return out, nil
}

// activePath is the package that guards ask.
const activePath = "fairlead.io/fairlead/sim/mutants/active"

func withImports(name string, f *patch.File) (string, error) {
	text, err := f.Text()
	if err != nil {
		return "", err
	}
	paths := f.Imports()
	if strings.Contains(text, "active.") {
		paths = append([]string{activePath}, paths...)
	}
	return patch.WithImports(name, text, paths)
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
	to := filepath.Join(folder, "overlay.json")
	return to, patch.WriteOverlay(to, replace)
}
