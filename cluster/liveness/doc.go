// SPDX-License-Identifier: Apache-2.0

// Package liveness decides which nodes are up, whose agent is down and which are down (design §6).
//
// Agents beat to every member. The leader asks each member which nodes it has not heard of; once a majority of
// those in contact missed three beats, and as soon as they missed two, members probe the node. A node that gives
// any sign of life only has its agent down: it gets no new addresses. One that gives none to anybody, while a
// majority probed it in vain, is down: it leaves the routes, unless it is the last next hop, which planning sees
// to. What can be doubted changes nothing:
//
//   - a member that hears no node at all has lost its own network, and one that did not run for a while was deaf:
//     the silence that they tell of is theirs;
//   - a leader without fresh answers of a quorum of the voters decides nothing, and a new one counts every silence
//     from its own take-over;
//   - when more than half of the nodes, and more than two, fall silent together, the fault is taken to be ours:
//     that waits for them to come back, or for an operator's word (a hold). Two are let go in any group, because in
//     one of three nodes two that share a rack or a power feed are a common loss, and the third, which is still
//     heard of, shows that the members' network is whole;
//   - who returns is held down for a while that doubles with each flap.
//
// A node is judged once an agent of it registered; it is back once its agent beats under the boot that the record
// knows, since a machine that answers without its agent may have lost its rules.
//
// Start reading at Judge, which is pure; Watcher is the leader's loop around it, Service a member's part.
package liveness
