// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// acceptance is a vulnerability that we live with for a while.
type acceptance struct {
	id     string
	until  time.Time // the last day
	reason string
}

// longest is for how long something may be accepted: a day that is further away is no end.
const longest = 366 * 24 * time.Hour

var acceptedLine = regexp.MustCompile(`^(GO-\d{4}-\d+) (\d{4}-\d{2}-\d{2}) (\S.*)$`)

// readAccepted reads a list: an id, the last day and the reason on each line that is no comment.
func readAccepted(text string) ([]acceptance, error) {
	var out []acceptance
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		m := acceptedLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("accepted.txt:%d: %q is not \"GO-2026-1234 2027-06-30 REASON\"", n, line)
		}
		until, err := time.Parse(time.DateOnly, m[2])
		if err != nil {
			return nil, fmt.Errorf("accepted.txt:%d: %w", n, err)
		}
		if slices.ContainsFunc(out, func(a acceptance) bool { return a.id == m[1] }) {
			return nil, fmt.Errorf("accepted.txt:%d: %s is there twice", n, m[1])
		}
		out = append(out, acceptance{m[1], until, m[3]})
	}
	return out, nil
}

// verdict is what is said of a tree.
type verdict struct {
	wrong    []string // lines that say what has to be done; the tree is in order if there are none
	notes    []string
	accepted int // of what was found
}

// judge compares what can be reached with what was accepted. What nobody needs to accept any more is a note alone: whoever builds with
// a newer Go does not reach what we do.
func judge(found []vulnerability, accepted []acceptance, now time.Time) verdict {
	var v verdict
	at := map[string]acceptance{}
	for _, a := range accepted {
		at[a.id] = a
		reached := slices.ContainsFunc(found, func(f vulnerability) bool { return f.id == a.id })
		switch end := a.until.AddDate(0, 0, 1); {
		case !now.Before(end):
			v.wrong = append(v.wrong, fmt.Sprintf("%s: error: it was accepted until %s: mend it, or say in accepted.txt why it can stay (%s)",
				a.id, a.until.Format(time.DateOnly), a.reason))
		case end.Sub(now) > longest:
			v.wrong = append(v.wrong, fmt.Sprintf("%s: error: it is accepted until %s: a year at most, or nobody looks at it again",
				a.id, a.until.Format(time.DateOnly)))
		case !reached:
			v.notes = append(v.notes, a.id+" is accepted, and cannot be reached any more: take it out of accepted.txt")
		}
	}
	for _, f := range found {
		if _, ok := at[f.id]; ok {
			v.accepted++
			continue
		}
		v.wrong = append(v.wrong, f.id+": error: "+f.String())
		for _, step := range f.way {
			v.wrong = append(v.wrong, "    "+step)
		}
	}
	return v
}
