// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// longestJournal is how long a journal grows before its book is written anew, in bytes: some ten thousand changes.
const longestJournal = 1 << 20

// journal is a file beside a book's, to which changes are appended: that takes the disk a fraction of what a whole book
// does, and calls wait for it. Its first line says which edition of the book it follows; of another one it is of no use.
type journal struct {
	path   string
	file   *os.File
	length int
	// broken: what is at its end is not known.
	broken bool
}

// entry is one line.
type entry struct {
	Edition uint64 `json:"edition,omitempty"` // of the first line
	Put     *line  `json:"put,omitempty"`
	Drop    *line  `json:"drop,omitempty"`
}

func (e entry) append(to []byte) []byte {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // texts and numbers always become JSON
	}
	return append(append(to, text...), '\n')
}

// openJournal opens a journal, to be begun with the next edition of its book.
func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep state: %w", err)
	}
	return &journal{path: path, file: file, broken: true}, nil
}

// readJournal gives the entries that follow an edition. What a crash left of a last line was never promised to anybody.
func readJournal(path string, edition uint64) ([]entry, error) {
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var entries []entry
	for n := 1; ; n++ {
		text, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return entries, nil
		}
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("line %d of %s: %w", n, path, err)
		}
		if n == 1 && e.Edition != edition {
			return nil, nil
		}
		entries, data = append(entries, e), rest
	}
}

// takes tells whether changes may be appended.
func (j *journal) takes(changes []byte) bool {
	return !j.broken && j.length+len(changes) <= longestJournal
}

// restart empties the journal for an edition that is on the disk.
func (j *journal) restart(edition uint64) error {
	j.broken = true
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	j.length = 0
	return j.append(entry{Edition: edition}.append(nil))
}

// append makes changes last.
func (j *journal) append(changes []byte) error {
	j.broken = true
	n, err := j.file.Write(changes)
	j.length += n
	if err == nil {
		err = j.file.Sync()
	}
	j.broken = err != nil
	return err
}

func (j *journal) close() error { return j.file.Close() }
