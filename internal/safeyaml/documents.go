// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// Document is one document of a file.
type Document struct {
	Line int // of the file, from 1, at which Text begins
	Text []byte
}

// Documents cuts a file at its document markers, "---" and "...", and between objects of JSON that stand behind each other, as kubectl reads them.
// Documents with nothing but space and comments are left out. Markers stand at the start of a line, where no value of a manifest can: block
// scalars are indented. Errors: those of UTF8.
func Documents(file []byte) (out []Document, err error) {
	data, err := UTF8(file)
	if err != nil {
		return nil, err
	}
	start, startLine, line := 0, 1, 0
	cut := func(end int) {
		if text := data[start:end]; !Blank(text) {
			out = append(out, objects(text, startLine)...)
		}
	}
	for at := 0; at < len(data); {
		line++
		next := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		if marks(data[at:next]) {
			cut(at)
			// What follows the marker on its line belongs to the new document.
			start, startLine = at+len("---"), line
		}
		at = next
	}
	cut(len(data))
	return out, nil
}

// objects are the documents of a text without markers.
func objects(text []byte, line int) (out []Document) {
	d := json.NewDecoder(bytes.NewReader(text))
	for begin := int64(0); ; {
		var value json.RawMessage
		switch err := d.Decode(&value); {
		case errors.Is(err, io.EOF) && len(out) > 0:
			return out
		case err != nil || value[0] != '{':
			return []Document{{line, text}}
		}
		end := d.InputOffset()
		out = append(out, Document{line, text[begin:end]})
		line += bytes.Count(text[begin:end], []byte("\n"))
		begin = end
	}
}

// marks tells whether a line is a marker of documents.
func marks(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || strings.IndexByte(" \t\r\n", line[3]) >= 0
}

// Blank tells whether a text holds nothing but space and comments.
func Blank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
