// SPDX-License-Identifier: Apache-2.0

package world

import (
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

func TestOrdersTellAllApart(t *testing.T) {
	testkit.TellsApart(t, ID.Compare)
	testkit.TellsApart(t, Ref.Compare)
	testkit.TellsApart(t, Tuple.compare)
}
