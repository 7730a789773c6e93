// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/binary"
	"errors"
	"strconv"
	"time"
)

// mode is what a coder does with the fields that it is shown.
type mode uint8

const (
	plain    mode = iota // append them to out, for the digest
	pack                 // append them to out, each text only once
	unpack               // fill them from in
	describe             // list them for people
)

// errShort says that a trace ends in the middle of an event, or refers to a text that it does not hold.
var errShort = errors.New("the trace is damaged")

// coder is shown the fields of events one by one (fields.go) and writes, reads or describes them. It is a plain struct
// with methods instead of an interface, so that events stay on the stack: it sees thousands of them per virtual second.
type coder struct {
	mode mode
	at   time.Duration // of the event at hand: moments are kept relative to it
	kind uint8         // describe: of the event at hand
	out  []byte
	in   []byte
	err  error

	refs  map[string]uint64 // pack: a text and its number, from 1
	texts []string          // unpack: texts by number, from 0 for number 1
	blobs []uint64          // pack: numbers of texts that came as bytes

	described []Field
}

// Field is one field of an event, for people.
type Field struct {
	Name, Value string
	kind        string // how it is written in a trace: what the page has to know
	empty       bool   // it is the zero value
}

func (c *coder) describes(name, kind, value string, empty bool) {
	c.described = append(c.described, Field{name, value, kind, empty})
}

// word is the number that all others are made of.
func (c *coder) word(v *uint64) {
	if c.mode != unpack {
		c.out = binary.AppendUvarint(c.out, *v)
		return
	}
	n, size := binary.Uvarint(c.in)
	if size <= 0 {
		c.err, c.in = errShort, nil
		*v = 0
		return
	}
	*v, c.in = n, c.in[size:]
}

// str is the text that all others are made of. Packed, it is a number: 0 and the text where it is new, then its own.
func (c *coder) str(s *string) {
	switch c.mode {
	case plain:
		c.out = binary.AppendUvarint(c.out, uint64(len(*s)))
		c.out = append(c.out, *s...)
	case pack:
		if ref, ok := c.refs[*s]; ok {
			c.out = binary.AppendUvarint(c.out, ref)
			return
		}
		c.introduce(*s)
	case unpack:
		*s = c.take()
	}
}

func (c *coder) introduce(s string) {
	c.refs[s] = uint64(len(c.refs)) + 1
	c.out = append(c.out, 0)
	c.out = binary.AppendUvarint(c.out, uint64(len(s)))
	c.out = append(c.out, s...)
}

// take reads a packed text.
func (c *coder) take() string {
	var ref uint64
	c.word(&ref)
	if ref > 0 {
		if ref > uint64(len(c.texts)) {
			c.err = errShort
			return ""
		}
		return c.texts[ref-1]
	}
	var size uint64
	c.word(&size)
	if size > uint64(len(c.in)) || c.err != nil {
		c.err = errShort
		return ""
	}
	s := string(c.in[:size])
	c.in = c.in[size:]
	c.texts = append(c.texts, s)
	return s
}

// count reads or writes the length of a list. What is left to read bounds it: every item has at least one byte.
func (c *coder) count(have int) int {
	n := uint64(have)
	c.word(&n)
	if c.mode == unpack && n > uint64(len(c.in)) {
		c.err = errShort
		return 0
	}
	return int(n)
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func (c *coder) text(name string, s *string) {
	if c.mode == describe {
		c.describes(name, "text", *s, *s == "")
		return
	}
	c.str(s)
}

func (c *coder) integer(name string, v *int) {
	if c.mode == describe {
		c.describes(name, "int", strconv.Itoa(*v), *v == 0)
		return
	}
	u := zigzag(int64(*v))
	c.word(&u)
	*v = int(unzigzag(u))
}

func (c *coder) number(name string, v *uint64) {
	if c.mode == describe {
		c.describes(name, "uint", strconv.FormatUint(*v, 10), *v == 0)
		return
	}
	c.word(v)
}

func (c *coder) number32(name string, v *uint32) {
	u := uint64(*v)
	c.number(name, &u)
	*v = uint32(u)
}

func (c *coder) number16(name string, v *uint16) {
	u := uint64(*v)
	c.number(name, &u)
	*v = uint16(u)
}

func (c *coder) flag(name string, v *bool) {
	if c.mode == describe {
		c.describes(name, "bool", map[bool]string{false: "no", true: "yes"}[*v], !*v)
		return
	}
	var u uint64
	if *v {
		u = 1
	}
	c.word(&u)
	*v = u == 1
}

// moment is a time of the run, kept as its distance from the event.
func (c *coder) moment(name string, v *time.Duration) {
	if c.mode == describe {
		c.describes(name, "moment", Clock(*v), *v == 0)
		return
	}
	u := zigzag(int64(c.at - *v))
	c.word(&u)
	*v = c.at - time.Duration(unzigzag(u))
}

// blob is bytes. They are kept like a text: several members apply the same entry.
func (c *coder) blob(name string, v *[]byte) {
	switch c.mode {
	case plain:
		c.out = binary.AppendUvarint(c.out, uint64(len(*v)))
		c.out = append(c.out, *v...)
	case pack:
		ref, ok := c.refs[string(*v)]
		if ok {
			c.out = binary.AppendUvarint(c.out, ref)
			return
		}
		c.introduce(string(*v))
		c.blobs = append(c.blobs, uint64(len(c.refs)))
	case unpack:
		*v = nil
		if s := c.take(); s != "" {
			*v = []byte(s)
		}
	case describe:
		c.describes(name, "bytes", strconv.Itoa(len(*v))+" bytes", len(*v) == 0)
	}
}
