// SPDX-License-Identifier: Apache-2.0

//go:build immutable

package fsm

import "fmt"

// unchanged panics when somebody wrote to a record after it was put: records are shared between readers,
// snapshots and the log, and are therefore never written to.
func unchanged(r Record) {
	if sum, _ := sumOf(r, nil); sum != r.sealed().sum {
		panic(fmt.Sprintf("fsm: %s %s was changed in place", r.Table(), r.Key()))
	}
}
