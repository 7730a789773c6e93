// SPDX-License-Identifier: Apache-2.0

package fsm

import "context"

// Reader is a copy of the record that others read; *State is one.
type Reader interface {
	// Read gives the record as it is now.
	Read() *View
	// Wait returns once any of the tables differs from what v shows, or with ctx's error.
	Wait(ctx context.Context, v *View, tables ...Table) error
}

var _ Reader = (*State)(nil)
