// SPDX-License-Identifier: Apache-2.0

// Package group_test runs a group of real processes beside a real switch through what may happen to it. Each test
// names the promise that it holds the group to.
package group_test

import (
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }
