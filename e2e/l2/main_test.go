// SPDX-License-Identifier: Apache-2.0

// Package l2_test runs agents and members as processes around a segment, and reads what is said there: who answers for
// an address, how soon another one does when its owner fails, and that never two do (S10).
package l2_test

import (
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }
