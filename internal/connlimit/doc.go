// SPDX-License-Identifier: Apache-2.0

// Package connlimit bounds the connections to a port, so that whoever proves nothing takes nothing from those who prove who
// they are.
//
// A connection climbs by Stages: it comes in Silent, is Unproven once it has sent something, and becomes a Guest or Known when
// the server that it came to vouches for it. Each Stage has places of its own. Where they are full, one connection goes for the
// new one: the oldest of whoever holds the most, a source being an IPv4 address or a /64 of IPv6. Sources from which somebody
// proved who he is lately have places apart. It knows neither TLS nor HTTP, and no certificates. Start reading at Limit; who
// goes is decided in places.go.
package connlimit
