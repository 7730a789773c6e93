// SPDX-License-Identifier: Apache-2.0

// Package speaker is a member's BGP speaker in a simulated world, in the place of GoBGP.
//
// It knows how to speak to the switches of sim/fabric. What to announce and in which order to change it is the shipped
// plan (bgp.Plan), and it behaves as dataplane/bgp/gobgp does where that shows: it dials, says that it went on
// forwarding, waits for End-of-RIB before it announces, sends all paths before its own End-of-RIB, demotes by MED and
// local preference, and leaves a planned restart without a word. It builds for guests and natively.
//
// Child has it live in what its parent takes for a process: the shipped supervisor and what ships of the child are the two ends of a pipe.
// What is killed of it are its connections, at whatever they were.
//
// Start reading at Speaker.Apply, then session, then Child.
package speaker
