// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
)

// A newer agent makes the table anew only if its version says so: a change of the rules without one would leave nodes
// with the old rules until they boot.
func TestRulesDoNotChangeWithoutTheirVersion(t *testing.T) {
	sum := sha256.New()
	for _, c := range chains(Options{}.withDefaults().marks()) {
		for _, part := range []any{c.chain, c.rules} {
			data, err := json.Marshal(part)
			if err != nil {
				t.Fatal(err)
			}
			sum.Write(data)
		}
	}
	const version, want = 3, "00dd20fd5c78d38c"
	if got := hex.EncodeToString(sum.Sum(nil)[:8]); got != want || filterVersion != version {
		t.Errorf("the rules of version %d have the sum %s, known is %s of version %d: raise filterVersion, then note both here", filterVersion, got, want, version)
	}
}
