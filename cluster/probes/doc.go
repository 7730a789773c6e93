// SPDX-License-Identifier: Apache-2.0

// Package probes makes of what nodes think of the listed addresses of policies, and of endpoints of Services, what the group thinks of them
// (balancing §14, K50).
//
// It knows that reachability differs from node to node, so that nobody's word counts alone, and that a node which is silent says
// nothing. It promises that a verdict changes only when more than half of the nodes that probe an address say so, silent ones
// counted in, whoever leads and however short; and that nothing is committed while verdicts stay.
//
// Start reading at Judge, which decides, and Watcher, which has it committed.
package probes
