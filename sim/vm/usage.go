// SPDX-License-Identifier: Apache-2.0

package vm

// Usage is what processes did, of all that were started with it. It has no part in what happens in their world.
type Usage struct {
	Resumes uint64
	Frames  uint64 // that were delivered
}

// resumed counts a resumption.
func (u *Usage) resumed() {
	if u != nil {
		u.Resumes++
	}
}

// delivered counts a frame.
func (u *Usage) delivered() {
	if u != nil {
		u.Frames++
	}
}
