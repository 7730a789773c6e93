// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"fairlead.io/fairlead/sim/event"
)

// A trace file is compressed with gzip. In it stand the line magic, the length of the head as a varint, the head in
// JSON, and the events up to the end, packed as in keep.go: distance in time and in number, kind, fields; a text is 0,
// its length and its bytes where it is new, and its number later. The head lists the kinds and their fields, which is
// all that a reader without this code needs; page/trace.js is one.
const magic = "fairlead trace 1\n"

// fileLimit bounds what Read unpacks: far above DefaultLimit, and well below what would hurt a workstation.
const fileLimit = 1 << 30

// head is what a file begins with.
type head struct {
	About   About             `json:"about"`
	Digest  string            `json:"digest"`
	Heard   uint64            `json:"heard"`
	Kept    int               `json:"kept"`
	Dropped map[string]uint64 `json:"dropped,omitempty"`
	Missing string            `json:"missing,omitempty"` // Dropped in words
	Kinds   []kindHead        `json:"kinds"`
}

type kindHead struct {
	Name   string      `json:"name"`
	Lane   string      `json:"lane"`
	Words  string      `json:"words"`
	Fields [][2]string `json:"fields"` // name, and how it is written
}

func kindHeads() []kindHead {
	var heads []kindHead
	for _, k := range kinds[1:] {
		c := coder{mode: describe}
		c.show(k.read(&coder{mode: unpack}))
		h := kindHead{Name: k.name, Lane: k.lane, Words: k.words, Fields: [][2]string{}}
		for _, f := range c.described {
			h.Fields = append(h.Fields, [2]string{f.Name, f.kind})
		}
		heads = append(heads, h)
	}
	return heads
}

// ErrFormat is in the error of Read for what is no trace, or one of another release.
var ErrFormat = errors.New("no trace of this release")

// Write writes the trace as a file. Equal traces give equal bytes.
func (t Trace) Write(w io.Writer) error {
	_, err := t.write(w, func(e event.Stamped) event.Stamped { return e })
	return err
}

// write writes events as change gives them. The coder that wrote them is for who needs the numbers of texts.
func (t Trace) write(w io.Writer, change func(event.Stamped) event.Stamped) (*coder, error) {
	front, err := json.Marshal(head{
		About: t.About, Digest: t.Digest, Heard: t.Heard, Kept: t.kept, Dropped: t.Dropped, Missing: t.Missing(),
		Kinds: kindHeads(),
	})
	if err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	zip := gzip.NewWriter(w)
	s := newStretch()
	s.out = append(s.out, magic...)
	s.out = binary.AppendUvarint(s.out, uint64(len(front)))
	s.out = append(s.out, front...)
	for e := range t.Events() {
		s.add(change(e))
		if len(s.out) < batch {
			continue
		}
		if _, err := zip.Write(s.out); err != nil {
			return nil, fmt.Errorf("write trace: %w", err)
		}
		s.out = s.out[:0]
	}
	if _, err := zip.Write(s.out); err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("write trace: %w", err)
	}
	return &s.coder, nil
}

// Read reads a file that Write wrote, and checks it: against its count, and against its digest when it is complete.
func Read(r io.Reader) (Trace, error) {
	t, err := read(r)
	if err != nil {
		return Trace{}, fmt.Errorf("read trace: %w", err)
	}
	return t, nil
}

func read(r io.Reader) (Trace, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return Trace{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	all, err := io.ReadAll(io.LimitReader(zip, fileLimit+1))
	if err != nil {
		return Trace{}, err
	}
	if len(all) > fileLimit {
		return Trace{}, fmt.Errorf("more than %d bytes of events", fileLimit)
	}
	rest, ok := bytes.CutPrefix(all, []byte(magic))
	size, n := binary.Uvarint(rest)
	if !ok || n <= 0 || size > uint64(len(rest)-n) {
		return Trace{}, ErrFormat
	}
	front, packed := rest[n:][:size], rest[n:][size:]
	var h head
	if err := json.Unmarshal(front, &h); err != nil {
		return Trace{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if !reflect.DeepEqual(h.Kinds, kindHeads()) {
		return Trace{}, fmt.Errorf("%w: it has other kinds of events; read it with the release that wrote it", ErrFormat)
	}
	t := Trace{About: h.About, Digest: h.Digest, Heard: h.Heard, Dropped: h.Dropped, packed: [][]byte{packed}, kept: h.Kept}
	return t, check(packed, h)
}

// check goes through all events once, so that nobody has to expect damage later.
func check(packed []byte, h head) error {
	again := New(Options{})
	var damage error
	for _, e := range unpacked(packed, &damage) {
		again.Hear(e)
	}
	switch {
	case damage != nil:
		return damage
	case again.Events() != uint64(h.Kept):
		return fmt.Errorf("%w: %d events of %d", errShort, again.Events(), h.Kept)
	case len(h.Dropped) == 0 && again.Events() == h.Heard && again.Digest() != h.Digest:
		return fmt.Errorf("%w: digest %s of events that had %s", errShort, again.Digest(), h.Digest)
	}
	return nil
}
