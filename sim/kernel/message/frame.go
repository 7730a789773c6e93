// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// most bounds a frame: far above any ruleset.
const most = 64 << 20

// Encode writes a Request or an Answer as a frame.
func Encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // plain values only
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// Decoder turns a stream of bytes into frames. The zero Decoder is ready.
type Decoder struct{ rest []byte }

// Add takes bytes, which stay the caller's, as they arrive.
func (d *Decoder) Add(b []byte) { d.rest = append(d.rest, b...) }

// Next reads the next whole frame into v, and tells whether there was one.
func (d *Decoder) Next(v any) (bool, error) {
	if len(d.rest) < 4 {
		return false, nil
	}
	n := int(binary.BigEndian.Uint32(d.rest))
	if n > most {
		return false, fmt.Errorf("frame of %d bytes", n)
	}
	if len(d.rest) < 4+n {
		return false, nil
	}
	body := d.rest[4 : 4+n]
	d.rest = d.rest[4+n:]
	if err := json.Unmarshal(body, v); err != nil {
		return false, fmt.Errorf("frame of %d bytes: %w", n, err)
	}
	return true, nil
}
