// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"encoding/binary"
	"net/netip"
	"time"
)

// Attributes of connection tracking (linux/netfilter/nfnetlink_conntrack.h).
const (
	ctaTupleOrig, ctaTupleReply            = 1, 2
	ctaProtoInfo, ctaTimeout, ctaID        = 4, 7, 12
	ctaTupleIP, ctaTupleProto              = 1, 2
	ctaV4Src, ctaV4Dst, ctaV6Src, ctaV6Dst = 1, 2, 3, 4
	ctaProtoNum, ctaProtoSrcPort           = 1, 2
	ctaProtoInfoTCP, ctaTCPState           = 1, 1

	headerBytes = 4      // of netfilter, before the attributes
	typeMask    = 0x3fff // of an attribute's type: without NLA_F_NESTED and NLA_F_NET_BYTEORDER
)

// parse reads one message of a dump. ok is false if it tells of no connection that this package can understand.
func parse(message []byte) (f Flow, ok bool) {
	if len(message) < headerBytes {
		return f, false
	}
	attributes(message[headerBytes:], func(kind uint16, value []byte) {
		switch kind {
		case ctaTupleOrig:
			attributes(value, f.tuple)
		case ctaTupleReply:
			attributes(value, f.reply)
		case ctaID:
			if len(value) == 4 {
				f.ID = binary.BigEndian.Uint32(value)
			}
		case ctaProtoInfo:
			attributes(value, f.protoInfo)
		case ctaTimeout:
			if len(value) == 4 {
				f.Left = time.Duration(binary.BigEndian.Uint32(value)) * time.Second
			}
		}
	})
	return f, f.From.IsValid() && f.To.IsValid() && f.Protocol != 0
}

func (f *Flow) tuple(kind uint16, value []byte) {
	switch kind {
	case ctaTupleIP:
		attributes(value, func(kind uint16, value []byte) {
			address, _ := netip.AddrFromSlice(value)
			switch kind {
			case ctaV4Src, ctaV6Src:
				f.From = address
			case ctaV4Dst, ctaV6Dst:
				f.To = address
			}
		})
	case ctaTupleProto:
		attributes(value, func(kind uint16, value []byte) {
			if kind == ctaProtoNum && len(value) > 0 {
				f.Protocol = value[0]
			}
		})
	}
}

func (f *Flow) reply(kind uint16, value []byte) {
	switch kind {
	case ctaTupleIP:
		attributes(value, func(kind uint16, value []byte) {
			if address, ok := netip.AddrFromSlice(value); ok && (kind == ctaV4Src || kind == ctaV6Src) {
				f.By = netip.AddrPortFrom(address, f.By.Port())
			}
		})
	case ctaTupleProto:
		attributes(value, func(kind uint16, value []byte) {
			if kind == ctaProtoSrcPort && len(value) == 2 {
				f.By = netip.AddrPortFrom(f.By.Addr(), binary.BigEndian.Uint16(value))
			}
		})
	}
}

func (f *Flow) protoInfo(kind uint16, value []byte) {
	if kind != ctaProtoInfoTCP {
		return
	}
	attributes(value, func(kind uint16, value []byte) {
		if kind == ctaTCPState && len(value) > 0 {
			f.State = State(value[0])
		}
	})
}

// attributes calls each with the attributes in data (linux/netlink.h): two bytes of length, which they count with, two of
// type, both in the machine's order, and padding to a multiple of four.
func attributes(data []byte, each func(kind uint16, value []byte)) {
	const head = 4
	for len(data) >= head {
		length := int(binary.NativeEndian.Uint16(data))
		if length < head || length > len(data) {
			return
		}
		each(binary.NativeEndian.Uint16(data[2:])&typeMask, data[head:length])
		data = data[min((length+3)&^3, len(data)):]
	}
}
