// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"fmt"

	"fairlead.io/fairlead/fsm"
)

var (
	// ErrDiffers ends a member whose record is not the one that a majority of the voters has.
	ErrDiffers = errors.New("this member's record is not the one that most voters have, and it takes no part any more; " +
		"move its data folder away, keep that for a report, and start again: the server rejoins as a new one and copies the record from the others")
	// ErrUndecided says that records differ and no majority of the voters has one of them, so that nobody is judged.
	ErrUndecided = errors.New("records differ, and no majority of the voters tells the same one: nobody is judged")
	// ErrUntold says that too few voters tell what they have: they do not answer, have a long way to go, or are of an older release. Those that do have
	// the same.
	ErrUntold = errors.New("too few voters tell their record's digest")
)

// DiffersError is ErrDiffers with what was found, which is remembered for the next start.
type DiffersError struct{ Found string }

func (e *DiffersError) Error() string { return fmt.Sprintf("%v (%s)", ErrDiffers, e.Found) }

func (e *DiffersError) Unwrap() error { return ErrDiffers }

// spoiled is what ends a member whose record in memory changed by itself. What is on its disk was written from entries that the group agreed on.
func spoiled(err error) error {
	if !errors.Is(err, fsm.ErrSpoiled) {
		return err
	}
	return fmt.Errorf("%w; this member ended, so that it does not spread, and reads its record from disk when it is started again: "+
		"if that comes again, look for errors of this machine's memory and report it with the log", err)
}
