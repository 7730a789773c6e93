// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"testing"
	"time"
)

// A minute of a calm world with 20 Services on three nodes.
func BenchmarkVirtualMinute(b *testing.B) {
	for b.Loop() {
		s := newStory(b, nil)
		s.begin()
		for i := range 20 {
			s.publish(fmt.Sprint("web", i), fmt.Sprint("203.0.113.", i+1), "n1", "n2", "n3")
		}
		s.wait(time.Minute)
		if s.set.Finish(s.now); len(s.broken) > 0 {
			b.Fatal(s.describe())
		}
	}
}
