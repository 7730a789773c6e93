// SPDX-License-Identifier: Apache-2.0

// Package ndp finds the router at the other end of a link, and has it find us: the part of Neighbour Discovery (RFC 4861) that BGP
// sessions without configured addresses need.
//
// A Link sends Router Advertisements that say no more than that we are there: their router lifetime is 0 and they bear no prefix, so
// that no host takes us for a way out. From those that it hears it knows who else is there. Start reading at Link; message.go has
// the bytes.
package ndp
