// SPDX-License-Identifier: Apache-2.0

// Package cluster_test runs a group of real processes between a real Kubernetes API and a real switch. Each test names
// the promise that it holds them to.
package cluster_test

import (
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }
