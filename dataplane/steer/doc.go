// SPDX-License-Identifier: Apache-2.0

// Package steer makes a node deliver packets for service addresses locally, and send their answers through the switch.
//
// It knows ip rules, the routes of two tables, one nftables table (inet fairlead-steer), a few settings of network
// interfaces, and in the cloud trial the node's default route. It promises that all it makes bears its mark (protocol
// 83, its table's name, or a record of what a setting was), that nothing else is changed; that an address that stays
// wanted is steered at every instant, also from one mode to the other; that what somebody else takes away is back within
// a second; and that Cleanup leaves nothing behind.
//
// Up to Options.RulesMax addresses of a family have two rules each, as the old system shows them. The cost of rules
// grows with their number, so more addresses share one rule for packets that nftables has marked.
//
// Aim says what should be, Plan how to get there from what is; both are pure. Start reading at Aim, then Plan, then
// Steer. What touches the kernel is in the files for Linux.
package steer
