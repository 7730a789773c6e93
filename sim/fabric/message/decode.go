// SPDX-License-Identifier: Apache-2.0

package message

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// ErrMalformed is wrapped by the errors of a Decoder.
var ErrMalformed = errors.New("malformed message")

// Decoder turns a stream of bytes into messages. The zero Decoder is ready.
type Decoder struct{ rest []byte }

// Add takes bytes, which stay the caller's, as they arrive.
func (d *Decoder) Add(b []byte) { d.rest = append(d.rest, b...) }

// Next gives the next whole message, nil if more bytes have to come first.
//
// Errors: ErrMalformed, after which the stream is of no more use.
func (d *Decoder) Next() (Message, error) {
	if len(d.rest) < head {
		return nil, nil
	}
	n := int(binary.BigEndian.Uint16(d.rest))
	if n < head || n > Most {
		return nil, fmt.Errorf("%w: length %d: must be from %d to %d", ErrMalformed, n, head, Most)
	}
	if len(d.rest) < n {
		return nil, nil
	}
	r := &reader{b: d.rest[head:n]}
	m := r.message(d.rest[2])
	d.rest = d.rest[n:]
	if r.bad || len(r.b) > 0 {
		return nil, fmt.Errorf("%w: %T of %d bytes does not fill them", ErrMalformed, m, n)
	}
	return m, nil
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) message(kind byte) Message {
	switch kind {
	case Open{}.kind():
		return r.open()
	case Update{}.kind():
		m := Update{Withdrawn: r.nlris(), Announced: r.nlris()}
		if len(m.Announced) > 0 {
			m.Attributes = r.attributes()
		}
		return m
	case Notification{}.kind():
		return Notification{Code: r.byte(), Subcode: r.byte(), Text: r.text()}
	case Keepalive{}.kind():
		return Keepalive{}
	case EndOfRIB{}.kind():
		return EndOfRIB{Family: Family(r.byte())}
	case Arrived{}.kind():
		return Arrived{Count: r.u32()}
	case Deadly{}.kind():
		return Deadly{}
	case Confusing{}.kind():
		return Confusing{}
	}
	r.bad = true
	return nil
}

func (r *reader) take(n int) []byte {
	if r.bad || len(r.b) < n {
		r.bad = true
		return make([]byte, min(n, Most))
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte             { return r.take(1)[0] }
func (r *reader) u16() uint16            { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32            { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) seconds() time.Duration { return time.Duration(r.u32()) * time.Second }
func (r *reader) text() string           { return string(r.take(int(r.u16()))) }

func (r *reader) bool() bool {
	b := r.byte()
	r.bad = r.bad || b > 1
	return b == 1
}

func (r *reader) address() netip.Addr {
	n := int(r.byte())
	if n == 0 {
		return netip.Addr{}
	}
	a, ok := netip.AddrFromSlice(r.take(n))
	r.bad = r.bad || !ok
	return a
}

func (r *reader) open() Open {
	m := Open{ASN: r.u32(), RouterID: r.address(), Hold: r.seconds()}
	for range r.byte() {
		m.Families = append(m.Families, Family(r.byte()))
	}
	m.AddPath, m.SendMax, m.Key = r.bool(), r.byte(), r.text()
	if r.bool() {
		m.Restart = &Restart{Time: r.seconds(), Forwarding: r.bool(), Notification: r.bool(), Stale: r.seconds()}
	}
	return m
}

func (r *reader) nlris() (out []NLRI) {
	for range r.u16() {
		if r.bad {
			return nil
		}
		id, bits := r.u32(), int(r.byte())
		a := r.address()
		out = append(out, NLRI{Prefix: netip.PrefixFrom(a, bits), PathID: id})
	}
	return out
}

func (r *reader) attributes() Attributes {
	a := Attributes{NextHop: r.address(), Origin: r.byte(), ASPath: r.numbers(), MED: r.u32(), LocalPref: r.u32()}
	a.Communities = r.numbers()
	for range r.u16() {
		if r.bad {
			break
		}
		a.LargeCommunities = append(a.LargeCommunities, [3]uint32{r.u32(), r.u32(), r.u32()})
	}
	return a
}

func (r *reader) numbers() (out []uint32) {
	for range r.u16() {
		if r.bad {
			return nil
		}
		out = append(out, r.u32())
	}
	return out
}
