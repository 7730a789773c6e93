// SPDX-License-Identifier: Apache-2.0

// Package cluster is the controller group: a few members that agree, with hashicorp/raft, on one log of commands
// and apply it to their copies of the record.
//
// It knows elections, membership, batching of proposals and what may be believed after a restart; it knows nothing
// of what a command means. Everything that touches the outside is handed in through Options: stores, transport,
// the machine that applies, the way to other members. Therefore the same code runs on real disks and sockets
// (cluster/store/disk, cluster/transport) and on simulated ones, several members in one process.
//
// It promises that a member ends by returning an error from Run and in no other way: a write that fails, a byte
// that changed on disk or a panic while applying stops that member loudly and leaves the others alone. It promises
// that the outcome of a proposal is either known, or surely did not happen (ErrNotLeader, ErrBusy), or is said to
// be unknown (ErrUnknownOutcome).
//
// Start reading at Options and Open (node.go), then propose.go for the way of a command, leadership.go for what
// runs while this member leads, contact.go for what a member may claim about the group, and store/guard.go for the
// disk.
package cluster
