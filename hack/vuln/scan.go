// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// vulnerability is one whose code can be reached from ours.
type vulnerability struct {
	id, summary   string
	module, found string // and the version of it that is used
	fixed         string // the version that mends it; empty if there is none
	way           []string
}

func (v vulnerability) String() string {
	fixed := "no version mends it"
	if v.fixed != "" {
		fixed = "mended in " + v.fixed
	}
	return fmt.Sprintf("%s (%s %s, %s; https://pkg.go.dev/vuln/%s); the way to it:", v.summary, v.module, v.found, fixed, v.id)
}

// scan has govulncheck look at packages of the module in a folder, with a database that is a folder of entries.
func scan(ctx context.Context, dir, database string, packages ...string) ([]vulnerability, error) {
	tool, err := govulncheck(ctx)
	if err != nil {
		return nil, err
	}
	at := url.URL{Scheme: "file", Path: filepath.ToSlash(database)}
	cmd := exec.CommandContext(ctx, tool, append([]string{"-format", "json", "-scan", "symbol", "-db", at.String()}, packages...)...)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stderr = &said
	answer, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("govulncheck: %w", joined(err, strings.TrimSpace(said.String())))
	}
	return readFindings(bytes.NewReader(answer))
}

// govulncheck builds the tool, unless it is in the cache of builds, and gives its path.
func govulncheck(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "-n", "govulncheck")
	cmd.Dir = filepath.Join(folder, "govulncheck")
	var said bytes.Buffer
	cmd.Stderr = &said
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("build govulncheck: %w", joined(err, strings.TrimSpace(said.String())))
	}
	return strings.TrimSpace(string(path)), nil
}

// message is what govulncheck writes (golang.org/x/vuln/internal/govulncheck), as far as we read it.
type message struct {
	Config *struct {
		ScanLevel string `json:"scan_level"`
	} `json:"config"`
	OSV *struct {
		ID      string `json:"id"`
		Summary string `json:"summary"`
	} `json:"osv"`
	Finding *finding `json:"finding"`
}

type finding struct {
	OSV   string  `json:"osv"`
	Fixed string  `json:"fixed_version"`
	Trace []frame `json:"trace"` // from what is vulnerable to what of ours leads there
}

type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Package  string `json:"package"`
	Function string `json:"function"` // empty where something is only required or imported
	Receiver string `json:"receiver"`
	Position *struct {
		File string `json:"filename"`
		Line int    `json:"line"`
	} `json:"position"`
}

// readFindings reads what govulncheck writes, and gives what can be reached, by id, each with its shortest way.
func readFindings(r io.Reader) ([]vulnerability, error) {
	summaries, shortest := map[string]string{}, map[string]*finding{}
	level := ""
	for in := json.NewDecoder(r); ; {
		var m message
		if err := in.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read what govulncheck wrote: %w", err)
		}
		switch f := m.Finding; {
		case m.Config != nil:
			level = m.Config.ScanLevel
		case m.OSV != nil:
			summaries[m.OSV.ID] = m.OSV.Summary
		case f != nil && len(f.Trace) > 0 && f.Trace[0].Function != "":
			if known := shortest[f.OSV]; known == nil || len(f.Trace) < len(known.Trace) {
				shortest[f.OSV] = f
			}
		}
	}
	// Of a database or packages that it cannot read it may find nothing, too.
	if level != "symbol" || len(summaries) == 0 {
		return nil, fmt.Errorf("govulncheck looked at %q and knows %d vulnerabilities of our modules: it cannot have looked well", level, len(summaries))
	}
	var out []vulnerability
	for _, id := range slices.Sorted(maps.Keys(shortest)) {
		f := shortest[id]
		out = append(out, vulnerability{
			id: id, summary: cmp.Or(summaries[id], "no summary"), module: f.Trace[0].Module, found: f.Trace[0].Version, fixed: f.Fixed, way: f.way(),
		})
	}
	return out, nil
}

// longestWay is how many steps of a way are shown.
const longestWay = 8

// way is how what is vulnerable is reached, from our side.
func (f *finding) way() []string {
	var out []string
	for _, step := range slices.Backward(f.Trace) {
		line := step.Package + "." + step.Function
		if step.Receiver != "" {
			line = step.Package + ".(" + step.Receiver + ")." + step.Function
		}
		if step.Position != nil && step.Position.File != "" {
			line += fmt.Sprintf(" (%s:%d)", step.Position.File, step.Position.Line)
		}
		out = append(out, line)
	}
	if cut := len(out) - longestWay; cut > 0 {
		out = slices.Insert(slices.Delete(out, longestWay/2, longestWay/2+cut), longestWay/2, "...")
	}
	return out
}
