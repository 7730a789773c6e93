// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
)

var (
	// ErrNotLeader says that a proposal was surely not made: this member does not lead, or no longer did when the
	// proposal's turn came. Proposing again, to the leader, is safe.
	ErrNotLeader = errors.New("not the leader")
	// ErrUnknownOutcome says that a proposal was handed to the log and then lost sight of: it may be committed, now
	// or later, or never. Only the record can tell.
	ErrUnknownOutcome = errors.New("outcome unknown: the proposal may still be committed")
	// ErrBusy says that a queue of proposals is full; the proposal was surely not made.
	ErrBusy = errors.New("too many proposals are waiting; try again in a moment, or send fewer at a time")
	// ErrStopped says that this member has ended or is ending; the proposal was surely not made.
	ErrStopped = errors.New("this member has stopped")
	// ErrRemoved ends a member that the group has removed. Its folder can never take part again.
	ErrRemoved = errors.New("this server was removed from the group; " +
		"move its data folder away to let it join again as a new server")
	// ErrRolledBack ends a member whose data folder holds less than it once acknowledged.
	ErrRolledBack = errors.New("the data folder is older than what this server has acknowledged; " +
		"move it away and start again: the server rejoins as a new one and copies the record from the others")
	// ErrNotReady says that a change of membership has to wait, for example until a lost server is surely gone.
	ErrNotReady = errors.New("not now")
)

// PanicError is a panic of the machine or of a function of the leader, as the error that ends this member.
type PanicError struct {
	In    string // what was running
	Value any
	Stack []byte
}

// Error says where and why; the stack is in the log and in Stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%s: panic: %v; this member stopped so that its record does not fork; report this with the log", e.In, e.Value)
}
