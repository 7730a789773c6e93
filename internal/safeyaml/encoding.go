// SPDX-License-Identifier: Apache-2.0

package safeyaml

import (
	"bytes"
	"encoding/binary"
	"errors"
	"unicode/utf16"
	"unicode/utf8"
)

// UTF8 gives a text as UTF-8, without a byte order mark: UTF-16, as PowerShell saves it, is known by its mark (YAML 1.2 §5.2). Errors: it is cut
// off, or no UTF-16 in spite of its mark.
func UTF8(text []byte) ([]byte, error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(text, []byte("\ufeff")), nil
	}
	if len(text)%2 != 0 {
		return nil, errors.New("it begins as UTF-16 and has an odd number of bytes")
	}
	out := make([]byte, 0, len(text)/2)
	for at := 2; at < len(text); at += 2 {
		r := rune(order.Uint16(text[at:]))
		if utf16.IsSurrogate(r) {
			if at += 2; at >= len(text) {
				return nil, errBadUTF16
			}
			if r = utf16.DecodeRune(r, rune(order.Uint16(text[at:]))); r == utf8.RuneError {
				return nil, errBadUTF16
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out, nil
}

var errBadUTF16 = errors.New("it begins as UTF-16 and has half of a character")
