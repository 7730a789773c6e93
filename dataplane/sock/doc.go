// SPDX-License-Identifier: Apache-2.0

// Package sock resolves service addresses at the client: a socket of this host that connects to, or sends to, an address
// of a Service or a policy gets to one of its backends at once. Nothing is translated on the wire, so nothing is paid per
// packet (balancing §1).
//
// It knows which rule counts for a place that is dialled (balancing §7), how backends are laid out so that a program finds one
// with two lookups, and how to get from the rows that are there to those that shall be so that no reader ever sees half
// of a set (balancing §16.3): a set that differs is written under a number of its own first, then the rows of the places that
// name it are put in one write each, then the old set goes. It promises that what it finds after a restart is adopted without a gap,
// that rows that are as they shall be are not written, and that a table that would overflow is refused before.
//
// All of that is pure: Planner turns Rules into Rows and tells the Change from one to the next; Rows.Resolve says what a call
// meets there, in words. The programs and tables of the kernel are in package program. Start reading at Rule, then
// Planner.Step.
package sock
