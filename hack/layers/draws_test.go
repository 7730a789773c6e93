// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"strings"
	"testing"
)

// drawsByItself lists, by package, the functions by which a test would draw other values on every run. A random generator of
// one's own, with a seed, is no such thing.
var drawsByItself = map[string]func(name string) (instead string){
	"pgregory.net/rapid": func(name string) string {
		switch name {
		case "Check":
			return "testkit.Check, or testkit.CheckUntil"
		case "MakeCheck":
			return "a function that calls testkit.Check"
		}
		return ""
	},
	"math/rand":    ownGenerator,
	"math/rand/v2": ownGenerator,
	"hash/maphash": func(string) string { return "hash/fnv" },
}

func ownGenerator(name string) string {
	if strings.HasPrefix(name, "New") {
		return ""
	}
	return "testkit.Random, or a generator with a seed that was drawn"
}

// What a test draws is the same on every run: package testkit says how.
func TestTestsDrawTheSameOnEveryRun(t *testing.T) {
	lookAtFiles(t, true, []string{"internal/testkit"}, drawsByItself)
}
