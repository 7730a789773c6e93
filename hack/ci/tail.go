// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

const (
	linesThatMatter = 10
	linesKept       = 20_000
)

// tail keeps the newest lines of a stage's output.
type tail struct {
	lines []string
	open  string // a line that has no end yet
}

func (t *tail) Write(p []byte) (int, error) {
	t.open += string(p)
	for {
		line, rest, ended := strings.Cut(t.open, "\n")
		if !ended {
			return len(p), nil
		}
		t.open = rest
		if len(t.lines) == linesKept {
			t.lines = append(t.lines[:0], t.lines[linesKept/2:]...)
		}
		t.lines = append(t.lines, line)
	}
}

var (
	// verdict is a line that a test runner or a linter puts what failed into.
	verdict = regexp.MustCompile(`^(failed|        again): |^\S+\.go:\d+|^\[?\w[\w /.-]*\]?: error|digests|broke at|WARNING: DATA RACE|^(about|seed): |^not gofmt`)
	// trouble is one that may tell, where there is none of those.
	trouble = regexp.MustCompile(`(?i)\b(error|fail(ed)?|panic|cannot|undefined)\b`)
	// noise says only that something else failed.
	noise = regexp.MustCompile(`^make(\[\d+\])?: \*\*\*|^exit status|^FAIL$|^\d+ passed, `)
)

// matter is what of the output tells best why the stage failed: the first lines with a verdict, those of trouble where there are none, or else the last ones.
func (t *tail) matter() []string {
	if t.open != "" {
		t.lines, t.open = append(t.lines, t.open), ""
	}
	for _, pattern := range []*regexp.Regexp{verdict, trouble} {
		var found []string
		for _, line := range t.lines {
			if pattern.MatchString(line) && !noise.MatchString(line) {
				found = append(found, line)
			}
		}
		if len(found) > 0 {
			return found[:min(len(found), linesThatMatter)]
		}
	}
	return t.lines[max(0, len(t.lines)-linesThatMatter):]
}
