// SPDX-License-Identifier: Apache-2.0

package ndp

import (
	"net"
)

// Types of ICMPv6 messages (RFC 4861 §4.1, §4.2).
const (
	typeSolicitation  = 133
	typeAdvertisement = 134
)

const (
	solicitationBytes  = 8  // without options
	advertisementBytes = 16 // without options
	optionSource       = 1  // source link-layer address
)

// solicitation asks the routers of a link to advertise themselves now. The kernel adds checksums.
func solicitation(from net.HardwareAddr) []byte {
	return append([]byte{typeSolicitation, 7: 0}, source(from)...)
}

// advertisement says that we are there, and no way out of the link: hop limit, flags, lifetime and timers are left open.
func advertisement(from net.HardwareAddr) []byte {
	return append([]byte{typeAdvertisement, 15: 0}, source(from)...)
}

// source is the option that tells a link-layer address, in units of 8 bytes; nothing for links that have none.
func source(from net.HardwareAddr) []byte {
	if len(from) != 6 {
		return nil
	}
	return append([]byte{optionSource, 1}, from...)
}

// read takes an ICMPv6 message that came with a hop limit. Messages that came over a router (their hop limit is below 255), or that
// are malformed, are of no kind.
func read(b []byte, hopLimit int) (kind byte) {
	if hopLimit != 255 || len(b) < solicitationBytes || b[1] != 0 {
		return 0
	}
	fixed := solicitationBytes
	switch b[0] {
	case typeSolicitation:
	case typeAdvertisement:
		fixed = advertisementBytes
	default:
		return 0
	}
	if len(b) < fixed {
		return 0
	}
	for rest := b[fixed:]; len(rest) > 0; {
		if len(rest) < 2 || rest[1] == 0 || len(rest) < 8*int(rest[1]) {
			return 0
		}
		rest = rest[8*int(rest[1]):]
	}
	return b[0]
}
