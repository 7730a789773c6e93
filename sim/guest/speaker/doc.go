// SPDX-License-Identifier: Apache-2.0

// Package speaker is a member's BGP speaker in a simulated world, in the place of GoBGP.
//
// It knows how to speak to the switches of sim/fabric. What to announce and in which order to change it is the shipped
// plan (bgp.Plan), and it behaves as dataplane/bgp/gobgp does where that shows: it dials, says that it went on
// forwarding, waits for End-of-RIB before it announces, sends all paths before its own End-of-RIB, demotes by MED and
// local preference, and leaves a planned restart without a word. It builds for guests and natively.
//
// Start reading at Speaker.Apply, then session.
package speaker
