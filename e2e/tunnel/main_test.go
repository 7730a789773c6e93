// SPDX-License-Identifier: Apache-2.0

// Package tunnel_test runs a member and agents as processes around hosts whose pods have no routes between them: a policy that leads to
// proxy addresses is carried out from the manifest to the pod's answer.
package tunnel_test

import (
	"testing"

	"fairlead.io/fairlead/e2e/lab"
)

func TestMain(m *testing.M) { lab.Main(m) }
