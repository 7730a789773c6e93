// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"strconv"
	"strings"
)

// Patch is what is changed in one file. Its text begins with
//
//	--- FILE "IMPORT" "IMPORT"
//
// where FILE is named from the root of the source and imports, those that the changes need beyond what the file has,
// may be left out. Places follow, separated by lines `@@`, each written like a patch: lines of the source as they are
// begin with a space, those that go with `-`, those that come with `+`. The source must have the lines of a place,
// without those that come, in exactly one spot.
type Patch struct {
	File    string
	Imports []string
	Places  [][]Line
}

// Line is one line of a place: ' ' as it is, '-' goes, '+' comes.
type Line struct {
	Sign byte
	Text string
}

// Added is all that comes.
func (p *Patch) Added() string {
	var b strings.Builder
	for _, place := range p.Places {
		for _, l := range place {
			if l.Sign == '+' {
				b.WriteString(l.Text + "\n")
			}
		}
	}
	return b.String()
}

const patchMark, placeMark = "--- ", "@@"

// Cut separates what comes before the first patch.
func Cut(text string) (head, body string) {
	if strings.HasPrefix(text, patchMark) {
		return "", text
	}
	i := strings.Index(text, "\n"+patchMark)
	if i < 0 {
		return text, ""
	}
	return text[:i+1], text[i+1:]
}

// Parse reads patches.
func Parse(text string) ([]Patch, error) {
	var out []Patch
	for number, line := range strings.Split(text, "\n") {
		last := len(out) - 1
		switch rest, header := strings.CutPrefix(line, patchMark); {
		case header:
			p, err := parseHeader(rest)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		case last < 0:
			if line != "" {
				return nil, fmt.Errorf("%q is no part of a patch", line)
			}
		case line == placeMark:
			out[last].Places = append(out[last].Places, nil)
		default:
			if line == "" {
				line = " "
			}
			if !strings.Contains(" +-", line[:1]) {
				return nil, fmt.Errorf("line %d of the patches: %q begins with none of space, + and -", number+1, line)
			}
			places := out[last].Places
			places[len(places)-1] = append(places[len(places)-1], Line{line[0], line[1:]})
		}
	}
	for i := range out {
		if err := out[i].trim(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func parseHeader(text string) (Patch, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return Patch{}, fmt.Errorf("a patch names no file")
	}
	p := Patch{File: words[0], Places: [][]Line{nil}}
	for _, w := range words[1:] {
		path, err := strconv.Unquote(w)
		if err != nil {
			return p, fmt.Errorf("patch of %s: import %s: %w", p.File, w, err)
		}
		p.Imports = append(p.Imports, path)
	}
	return p, nil
}

// trim leaves out blank lines around places, which only part them for the eye.
func (p *Patch) trim() error {
	for i, place := range p.Places {
		for len(place) > 0 && place[0] == (Line{Sign: ' '}) {
			place = place[1:]
		}
		for len(place) > 0 && place[len(place)-1] == (Line{Sign: ' '}) {
			place = place[:len(place)-1]
		}
		changes := 0
		for _, l := range place {
			if l.Sign != ' ' {
				changes++
			}
		}
		if changes == 0 || changes == len(place) && place[0].Sign == '+' && place[changes-1].Sign == '+' {
			return fmt.Errorf("patch of %s: place %d changes nothing, or has no line of the source", p.File, i+1)
		}
		p.Places[i] = place
	}
	return nil
}
