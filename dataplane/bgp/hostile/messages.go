// SPDX-License-Identifier: Apache-2.0

package hostile

import "encoding/hex"

// Messages are messages that ended a speaker once, or whose kind did, by name. Each is sent while a session is established.
func Messages() map[string][]byte {
	var (
		origin   = attribute(0x40, 1, 0)
		asPath   = attribute(0x40, 2, 2, 1, 0, 0, ASN>>8, ASN&0xff)
		nextHop  = attribute(0x40, 3, 192, 0, 2, 254)
		as4Path  = attribute(0xc0, 17, 2, 1, 0, 0, ASN>>8, ASN&0xff)
		someNLRI = []byte{24, 203, 0, 113}
	)
	of := func(attributes ...[]byte) []byte { return update(nil, someNLRI, attributes...) }
	return map[string][]byte{
		"as4-path-before-as-path":        of(as4Path, origin, nextHop, asPath), // GO-2026-4736
		"as4-path-empty":                 of(origin, attribute(0x40, 2), nextHop, attribute(0xc0, 17, 2, 0)),
		"next-hop-of-no-bytes":           of(origin, asPath, attribute(0x40, 3)),
		"next-hop-of-two-bytes":          of(origin, asPath, attribute(0x40, 3, 192, 0)),
		"well-known-and-unknown":         of(origin, asPath, nextHop, attribute(0x40, 99, 0)),
		"ipv6-communities-of-3-bytes":    of(origin, asPath, nextHop, attribute(0xc0, 25, 0, 2, 1)),
		"ipv6-communities-of-21-bytes":   of(origin, asPath, nextHop, attribute(0xc0, 25, make([]byte, 21)...)),
		"attribute-longer-than-all":      message(TypeUpdate, []byte{0, 0, 0, 4, 0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfc, 1}),
		"attribute-without-a-type":       message(TypeUpdate, []byte{0, 0, 0, 5, 0x40, 1, 1, 0, 0x40}),
		"origin-empty":                   of(attribute(0x40, 1), asPath, nextHop),
		"as-path-empty":                  of(origin, attribute(0x40, 2), nextHop),
		"family-unknown":                 update(nil, nil, origin, asPath, attribute(0x80, 14, 0x40, 0x0f, 200, 4, 192, 0, 2, 1, 0, 24, 10, 0, 0)),
		"aggregator-of-3-bytes":          of(origin, asPath, nextHop, attribute(0xc0, 7, 0, 0, 0)),
		"as4-aggregator-alone":           of(origin, asPath, nextHop, attribute(0xc0, 18, 0, 0, 0xfc, 1, 192, 0, 2, 1)),
		"prefix-sid-with-partial":        of(origin, asPath, nextHop, attribute(0xe0, 40, 6, 0, 7, 0, 0, 0, 0, 0, 0, 1, 0x40)),
		"as4-path-before-as-path-2":      unhex("ffffffffffffffffffffffffffffffff0034020000001d40010100c0110602010000fc01400304c00002fe40020602010000fc01"),
		"flow-spec-in-mp-reach":          unhex("ffffffffffffffffffffffffffffffff0065020000004a400304c00002fe800e034004470401020304000001000401020304800e1f0001800c0000000000000000010203040070000001000000010000010a000040020602010000fc014001010018cb0071"),
		"prefix-sid-cut":                 unhex("ffffffffffffffffffffffffffffffff004d02000000364001010080040400000001c0280a01000005000000000001801a0b01000b360000000000000001400304c00002fe400602010000fc01"),
		"vpn-label-stack":                unhex("ffffffffffffffffffffffffffffffff004f0200000038400304c00002fe4001010040020602010000fc01800e1f0001800c000000000000000001020304007000004c010000e900010000010a0000"),
		"vpn-flow-spec":                  unhex("ffffffffffffffffffffffffffffffff005b0200000044030304c002fe40010100800e1f0001800c0000000000000000010203040070000001000000010000010a000040020602010000fc01800e0c00018500000603180a003d00"),
		"type-unknown":                   message(0xff, nil),
		"type-none":                      message(0, nil),
		"open-again":                     message(typeOpen, openBody()),
		"notification-without-a-code":    message(typeNotification, nil),
		"route-refresh-without-a-family": message(typeRouteRefresh, nil),
		"route-refresh-of-no-family":     message(typeRouteRefresh, []byte{0x40, 0x0f, 0, 200}),
	}
}

// RouteRefresh asks for all IPv4 paths again (RFC 2918).
func RouteRefresh() []byte { return message(typeRouteRefresh, []byte{0, 1, 0, 1}) }

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}
