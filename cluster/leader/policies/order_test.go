// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// Leaders of two builds plan alike what they find in maps.
func TestOrdersTellAllApart(t *testing.T) { testkit.TellsApart(t, comparePorts) }
