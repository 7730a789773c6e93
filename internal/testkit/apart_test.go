// SPDX-License-Identifier: Apache-2.0

package testkit_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"fairlead.io/fairlead/internal/testkit"
)

// told notes what is held against an order.
type told struct {
	testing.TB
	lines []string
}

func (t *told) Helper()                      {}
func (t *told) Errorf(f string, args ...any) { t.lines = append(t.lines, fmt.Sprintf(f, args...)) }

func TestOrdersThatMissAFieldAreFound(t *testing.T) {
	type inner struct {
		At   netip.Addr
		Port uint16
	}
	type outer struct {
		inner
		In   inner
		Name string
	}
	byAll := func(a, b outer) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), a.In.At.Compare(b.In.At), cmp.Compare(a.In.Port, b.In.Port))
	}
	for name, c := range map[string]struct {
		compare func(a, b outer) int
		finds   string
	}{
		"all":        {byAll, ""},
		"one-misses": {func(a, b outer) int { a.In.Port, b.In.Port = 0, 0; return byAll(a, b) }, "outer.In.Port:"},
		"one-way":    {func(a, b outer) int { return max(byAll(a, b), 0) }, "outer.In.At:"},
		"both-ways": {func(a, b outer) int {
			if a != b {
				return 1
			}
			return 0
		}, "outer.Name:"},
	} {
		t.Run(name, func(t *testing.T) {
			var found told
			testkit.TellsApart(&found, c.compare)
			if got := strings.Join(found.lines, "\n"); c.finds == "" && got != "" || !strings.Contains(got, c.finds) {
				t.Errorf("found %q, want %q", got, c.finds)
			}
		})
	}
}
