// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"errors"
	"fmt"
)

// ErrSpoiled says that records are not what they were when they were put.
var ErrSpoiled = errors.New("this copy of the record in memory is not what was written to it")

// verifySlice is how many records are hashed between two rests: some tenths of a millisecond.
const verifySlice = 128

// Verify hashes all records again and compares them with what they were when they were put, and their sum with the digest. It calls rest after
// each some hundred microseconds of that, which may take its time, and ends with the error that it gives. It reads nothing but the view, beside
// everybody else.
//
// Errors: ErrSpoiled names the first record that is another one, if it is one; rest's.
func (v *View) Verify(rest func() error) error {
	var sum Digest
	var buf []byte
	var err error
	n := 0
	for _, t := range Tables() {
		v.rows.tables[t].each(func(r Record) bool {
			var now Digest
			if now, buf, err = hashOf(r, buf); err != nil || now != r.sealed().sum {
				err = fmt.Errorf("%w: %s %q at index %d, or what it once hashed to, was changed", ErrSpoiled, t, r.Key(), v.applied)
				return false
			}
			sum.add(now)
			if n++; n%verifySlice == 0 {
				err = rest()
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	if sum != v.digest {
		return fmt.Errorf("%w: at index %d its records sum up to %s, and the digest that was kept is %s", ErrSpoiled, v.applied, sum, v.digest)
	}
	return nil
}
