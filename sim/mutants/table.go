// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// What stands around the table in a document.
const (
	tableBegins = "<!-- planted bugs: made by `make mutants ARGS=--write` -->"
	tableEnds   = "<!-- end of planted bugs -->"
)

// Table shows what became of planted bugs, in Markdown.
func Table(all []Mutant, catches []Catch) string {
	var b strings.Builder
	b.WriteString("| planted bug | what it breaks | caught by | seeds | virtual seconds | in drawn worlds |\n|---|---|---|--:|--:|---|\n")
	for i, c := range catches {
		by := "**not caught**, expected " + strings.Join(all[i].Rules, " or ")
		if c.Caught {
			by = c.Rule
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s |\n", c.Name, all[i].Breaks, by, c.Seeds, seconds(c.VirtualSeconds), c.Drawn)
	}
	return b.String()
}

// String says it in few words.
func (d *Drawn) String() string {
	switch {
	case d == nil:
		return "not tried"
	case !d.Caught:
		return fmt.Sprintf("not in %d", d.Seeds)
	}
	return fmt.Sprintf("%s, seed %d", d.Rule, d.Seed)
}

func seconds(s float64) string { return strconv.FormatFloat(s, 'f', 1, 64) }

// WriteTable puts a table into a document, in place of the one that is there. A document that is missing is made.
func WriteTable(path, table string) error {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write the table of planted bugs: %w", err)
	}
	next, err := withTable(string(text), table)
	if err == nil {
		err = os.WriteFile(path, []byte(next), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the table of planted bugs into %s: %w", path, err)
	}
	return nil
}

func withTable(text, table string) (string, error) {
	made := tableBegins + "\n" + table + tableEnds
	before, rest, begins := strings.Cut(text, tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	switch {
	case begins && ends:
		return before + made + after, nil
	case begins:
		return "", fmt.Errorf("the line %q is missing", tableEnds)
	case text != "":
		text += "\n"
	}
	return text + "## Planted bugs\n\n" + made + "\n", nil
}
