// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// change replaces some lines of a file, or none, by others.
type change struct {
	by       string // whose it is
	from, to int    // lines of the source, half open, from 0
	lines    []string
}

// File is a source file and what is to change in it.
type File struct {
	name    string
	lines   []string
	imports []string
	changes []change
}

// NewFile takes a file as it is.
func NewFile(name, text string) *File { return &File{name: name, lines: strings.Split(text, "\n")} }

// Take finds the places of a patch. Errors name whose it is.
func (f *File) Take(by string, p *Patch) error {
	for _, path := range p.Imports {
		if !slices.Contains(f.imports, path) {
			f.imports = append(f.imports, path)
		}
	}
	for i, place := range p.Places {
		var old []string
		for _, l := range place {
			if l.Sign != '+' {
				old = append(old, l.Text)
			}
		}
		at, count := find(f.lines, old)
		if count != 1 {
			return fmt.Errorf("%s no longer applies: place %d in %s, which begins with %q, is there %d times, not once; look at what became of it",
				by, i+1, f.name, strings.TrimSpace(old[0]), count)
		}
		f.changes = append(f.changes, changesOf(by, at, place)...)
	}
	return nil
}

// find tells where some lines begin, and how often they are there.
func find(all, lines []string) (at, count int) {
	for i := 0; i+len(lines) <= len(all); i++ {
		if slices.Equal(all[i:i+len(lines)], lines) {
			at = i
			count++
		}
	}
	return at, count
}

// changesOf are the changes that a place at a line asks for.
func changesOf(by string, at int, place []Line) []change {
	var out []change
	open := false
	for _, l := range place {
		if l.Sign == ' ' {
			open = false
			at++
			continue
		}
		if !open {
			out = append(out, change{by: by, from: at, to: at})
			open = true
		}
		c := &out[len(out)-1]
		if l.Sign == '-' {
			at++
			c.to = at
		} else {
			c.lines = append(c.lines, l.Text)
		}
	}
	return out
}

// Text is the file with its changes, without their imports. Lines keep their numbers up to the first change.
func (f *File) Text() (string, error) {
	slices.SortStableFunc(f.changes, func(a, b change) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	var out []string
	at := 0
	for i, c := range f.changes {
		if c.from < at {
			return "", fmt.Errorf("%s and %s change the same lines of %s, from line %d", f.changes[i-1].by, c.by, f.name, c.from+1)
		}
		out = append(append(out, f.lines[at:c.from]...), c.lines...)
		at = c.to
	}
	return strings.Join(append(out, f.lines[at:]...), "\n"), nil
}

// Imports are the packages that the changes need.
func (f *File) Imports() []string { return f.imports }

// WithImports adds the imports that a text of Go lacks on the line of its package clause, so that no other line moves.
func WithImports(name, text string, paths []string) (string, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("%s with its changes: %w", name, err)
	}
	has := map[string]bool{}
	for _, s := range parsed.Imports {
		path, _ := strconv.Unquote(s.Path.Value) // the parser took it
		has[path] = true
	}
	at := set.Position(parsed.Name.End()).Offset
	added := ""
	for _, path := range paths {
		if !has[path] {
			added += "; import " + strconv.Quote(path)
		}
	}
	return text[:at] + added + text[at:], nil
}
