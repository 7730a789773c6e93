// SPDX-License-Identifier: Apache-2.0

// Package agent is the loop of a node's agent: it follows one member of the group, keeps what it was told on
// disk, has it carried out, acknowledges it, and heartbeats to all members.
//
// It knows nothing of the kernel: an Applier carries out, a Store keeps, a Conn reaches a member. It promises
// that what is carried out never runs back (S13), also over restarts, since nothing is carried out before it is
// kept; that nothing is changed when nobody answers; that only what was carried out is acknowledged; and that
// an agent moves on from a member that is silent, behind, or says that it cannot serve.
//
// Start reading at Agent.Run; follow.go is the way in, apply.go the way out, beat.go the heartbeats. Files and
// the boot id are in the package disk.
package agent
