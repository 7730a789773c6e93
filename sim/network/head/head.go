// SPDX-License-Identifier: Apache-2.0

// Package head writes the heads of HTTP requests and answers as they travel over simulated connections: a request's
// head is the hello of its connection, an answer's head the first data. Guests and models share it.
package head

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// Request is the head of a request.
type Request struct {
	Method string
	Target string // path and query
	Header map[string][]string
}

// Response is the head of an answer.
type Response struct {
	Status int
	Header map[string][]string
}

// ErrMalformed says that bytes are no head.
var ErrMalformed = errors.New("malformed head")

// Encode gives the bytes of a request's head. Equal heads have equal bytes.
func (r Request) Encode() []byte {
	b := appendText(nil, r.Method)
	b = appendText(b, r.Target)
	return appendHeader(b, r.Header)
}

// DecodeRequest reads them.
func DecodeRequest(b []byte) (r Request, err error) {
	d := decoder{b: b}
	r.Method, r.Target = d.text(), d.text()
	r.Header = d.header()
	return r, d.end()
}

// Encode gives the bytes of an answer's head.
func (r Response) Encode() []byte {
	return appendHeader(binary.AppendUvarint(nil, uint64(r.Status)), r.Header)
}

// DecodeResponse reads them.
func DecodeResponse(b []byte) (r Response, err error) {
	d := decoder{b: b}
	r.Status = int(d.number())
	r.Header = d.header()
	return r, d.end()
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendHeader(b []byte, h map[string][]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(h)))
	for _, key := range slices.Sorted(maps.Keys(h)) {
		b = binary.AppendUvarint(appendText(b, key), uint64(len(h[key])))
		for _, value := range h[key] {
			b = appendText(b, value)
		}
	}
	return b
}

// decoder reads from b; after the first mistake it reads nothing but zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count is a number of things of at least a byte each.
func (d *decoder) count() int {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.bad, d.b = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

func (d *decoder) header() map[string][]string {
	h := map[string][]string{}
	for range d.count() {
		key := d.text()
		var values []string
		for range d.count() {
			values = append(values, d.text())
		}
		h[key] = values
	}
	return h
}

func (d *decoder) end() error {
	if d.bad || len(d.b) > 0 {
		return ErrMalformed
	}
	return nil
}
