// SPDX-License-Identifier: Apache-2.0

// Package desired is what a node shall have, on its way from a member to the node's agent: a set of items equal
// on all nodes, what is the node's own, and a revision of the record.
//
// It knows how items are hashed, encoded and merged, and what they mean. It promises that a State is immutable,
// that a step is merged whole or not at all, that what comes out has the digest that the sender named, and that
// items of a kind that this release does not know are kept and hashed all the same. It performs no I/O.
//
// Start reading at State; Digest and Pieces are the members' side, Steps the agent's.
package desired
