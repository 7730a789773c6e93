// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"hash/fnv"
	"math/rand/v2"

	"pgregory.net/rapid"
)

// Random gives a test that is no property its random numbers: the same on every run, and others than another test's. A
// seed that was chosen counts, and with 0 the numbers differ from run to run: the log then has the seed that repeats them.
func Random(t rapid.TB) *rand.Rand {
	t.Helper()
	seed := chosenSeed()
	if seed == 0 {
		seed = rand.Uint64()
		t.Logf("[testkit] -rapid.seed=%d", seed)
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed, name.Sum64()))
}
