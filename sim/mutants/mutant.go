// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"fairlead.io/fairlead/sim/patch"
)

// Mutant is one planted bug.
type Mutant struct {
	Name   string   // that of its file
	Breaks string   // one sentence: what somebody got wrong
	Rules  []string // those that are expected to catch it, by their names in package check
	// Scenario is a file in scenarios/ that provokes it; empty: scenarios drawn from seeds do.
	Scenario string
	Patches  []patch.Patch
}

//go:embed planted/*.mutant
var planted embed.FS

// extension is that of the files of planted bugs.
const extension = ".mutant"

// All reads the planted bugs, sorted by name.
func All() ([]Mutant, error) {
	files, err := planted.ReadDir("planted")
	if err != nil {
		return nil, fmt.Errorf("list planted bugs: %w", err)
	}
	var all []Mutant
	for _, f := range files {
		text, err := planted.ReadFile(path.Join("planted", f.Name()))
		if err != nil {
			return nil, fmt.Errorf("read a planted bug: %w", err)
		}
		m, err := Parse(strings.TrimSuffix(f.Name(), extension), string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Parse reads a planted bug. The text begins with lines `breaks: SENTENCE`, `caught by: RULE RULE...` and, if it needs
// one, `scenario: FILE`; patches follow (see package patch).
func Parse(name, text string) (Mutant, error) {
	m := Mutant{Name: name}
	head, body := patch.Cut(text)
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(line)
		key, value, ok := strings.Cut(line, ": ")
		switch {
		case line == "":
		case ok && key == "breaks":
			m.Breaks = value
		case ok && key == "caught by":
			m.Rules = strings.Fields(value)
		case ok && key == "scenario":
			m.Scenario = value
		default:
			return m, fmt.Errorf("planted bug %s: line %q: want breaks, caught by or scenario, and a value", name, line)
		}
	}
	var err error
	if m.Patches, err = patch.Parse(body); err != nil {
		return m, fmt.Errorf("planted bug %s: %w", name, err)
	}
	return m, m.check()
}

// check refuses what could break the program while the bug is not on.
func (m *Mutant) check() error {
	fault := ""
	switch {
	case m.Breaks == "":
		fault = "it does not say what it breaks"
	case len(m.Rules) == 0:
		fault = "it does not say which rules catch it"
	case !slices.ContainsFunc(m.Patches, func(p patch.Patch) bool { return strings.Contains(p.Added(), guard(m.Name)) }):
		fault = "nothing that it adds is guarded by " + guard(m.Name)
	}
	for _, p := range m.Patches {
		rest := strings.ReplaceAll(p.Added(), guard(m.Name), "")
		if strings.Contains(rest, "active.") {
			fault = "it adds a guard of something else in " + p.File
		}
	}
	if fault != "" {
		return fmt.Errorf("planted bug %s: %s", m.Name, fault)
	}
	return nil
}

// guard is how a planted bug asks whether it is on.
func guard(name string) string { return fmt.Sprintf("active.Is(%q)", name) }
