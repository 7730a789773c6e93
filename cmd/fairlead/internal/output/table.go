// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// none stands where a cell would be empty, so that columns can be counted.
const none = "-"

// WriteRows writes a header and rows in aligned columns. Names come from elsewhere: what would move the cursor
// or break the line is shown as "?".
func WriteRows(w io.Writer, header []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	writeLine(t, header)
	for _, row := range rows {
		writeLine(t, row)
	}
	return t.Flush()
}

// WriteFields writes one "name:  value" a line, aligned, in the order given; fields without value are left out.
func WriteFields(w io.Writer, fields ...[2]string) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, f := range fields {
		if f[1] != "" {
			_, _ = fmt.Fprintf(t, "%s:\t%s\n", f[0], Clean(f[1])) // tabwriter keeps it; Flush tells the error
		}
	}
	return t.Flush()
}

func writeLine(w io.Writer, cells []string) {
	clean := make([]string, len(cells))
	for i, c := range cells {
		if clean[i] = Clean(c); clean[i] == "" {
			clean[i] = none
		}
	}
	_, _ = fmt.Fprintln(w, strings.Join(clean, "\t")) // tabwriter keeps it; Flush tells the error
}

// Clean gives text without characters that steer a terminal, on one line.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, text)
}
