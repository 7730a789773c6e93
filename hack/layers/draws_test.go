// SPDX-License-Identifier: Apache-2.0

package layers_test

import (
	"io/fs"
	"path/filepath"
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
	const own = "internal/testkit"
	root, seen := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == own || path != root && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.HasSuffix(name, "_test.go"):
			seen++
			lookAtCalls(t, path, drawsByItself)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 500 {
		t.Errorf("only %d files of tests were looked at", seen)
	}
}
