// SPDX-License-Identifier: Apache-2.0

// Package agents is the members' side of the nodes' agents (AgentService): it streams to each node what it
// shall have, takes what the nodes acknowledge to the leader, and counts their heartbeats.
//
// It knows how the record becomes items (api/desired). It promises that the revision told to an agent never
// runs back (S13); that a change is derived and encoded once, however many nodes there are; that a slow agent
// holds one message and no queue; that an agent which comes back, to whichever member, is sent what it lacks
// where that is known and everything only where it is not; and that a member which may be wrong (behind, or
// out of touch with a quorum) says so and ends its streams.
//
// Start reading at Service; board.go is what all nodes share, stream.go one agent.
package agents
