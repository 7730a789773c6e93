// SPDX-License-Identifier: Apache-2.0

package safeyaml

import "bytes"

// plain tells at a glance that a text can have no alias and cannot be nested too deeply, as nearly all can not: they need no second
// parser. It may be wrong only in not telling.
func plain(text []byte) bool {
	if len(text) >= 2 && (text[0] == 0xfe || text[0] == 0xff) {
		return false // UTF-16
	}
	depth := 0
	for line := range bytes.Lines(text) {
		// Each level of a block is indented further, but that a list may stand where its key does.
		depth = max(depth, 2*indent(line))
	}
	for i, c := range text {
		switch {
		case c == '[' || c == '{':
			depth++
		case c == '*' && (i == 0 || !within(text[i-1])):
			return false
		case oddBreak(text[i:]):
			return false
		}
	}
	return depth < MaxDepth
}

// indent is how many bytes stand before the first value of a line, or are the marks of lists and keys.
func indent(line []byte) int {
	return len(line) - len(bytes.TrimLeft(line, " \t-?:"))
}

// oddBreak tells whether a text begins with an end of line that is not '\n'.
func oddBreak(text []byte) bool {
	switch text[0] {
	case '\r':
		return len(text) == 1 || text[1] != '\n'
	case 0xc2, 0xe2:
		return bytes.HasPrefix(text, []byte("\u0085")) || bytes.HasPrefix(text, []byte("\u2028")) || bytes.HasPrefix(text, []byte("\u2029"))
	}
	return false
}

// within tells that a star after c is part of a text.
func within(c byte) bool {
	return c == '"' || c == '\'' || c == '/' || c == '.' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
