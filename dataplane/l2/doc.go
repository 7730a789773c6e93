// SPDX-License-Identifier: Apache-2.0

// Package l2 answers for service addresses on the segments that a node is in: ARP (RFC 826) for IPv4, Neighbor
// Discovery (RFC 4861) for IPv6.
//
// It promises that no answer and no announcement for an address is decided unless this node holds a lease of it that
// is valid by its own clock, one that never stops while the machine sleeps. A lease is valid from the answer to a
// renewal until its term after that renewal was sent: whoever grants leases heard of the renewal later than that, and
// waits longer. What announces and answers is this package alone; the kernel knows the addresses as routes, and answers
// for none of them (package steer sees to it).
//
// Book has the leases, Responder what is said for them and when; both are pure. L2 makes them work over an Edge, which
// is packet sockets on Linux. Start reading at Responder.
package l2
