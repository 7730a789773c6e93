// SPDX-License-Identifier: Apache-2.0

// Package docs_test holds the documentation to the code where both list the same things.
package docs_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

var (
	inCode = regexp.MustCompile(`"(fairlead_[a-z_]+)"`)
	inDocs = regexp.MustCompile("(?m)^\\| `(fairlead_[a-z_]+)` \\|")
)

// TestEveryMetricIsDocumented (K52) compares docs/metrics.md with the names in the sources of members and agents.
func TestEveryMetricIsDocumented(t *testing.T) {
	code := map[string]bool{}
	for _, room := range []string{"cluster", "cmd", "dataplane", "internal", "k8s"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			for _, match := range inCode.FindAllSubmatch(source, -1) {
				code[string(match[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(code) < 50 {
		t.Fatalf("only %d metrics found in the code", len(code))
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, match := range inDocs.FindAllSubmatch(page, -1) {
		name := string(match[1])
		if documented[name] {
			t.Errorf("docs/metrics.md lists %s twice", name)
		}
		documented[name] = true
		if !code[name] {
			t.Errorf("docs/metrics.md lists %s, which nothing in the code is called", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(code)) {
		if !documented[name] {
			t.Errorf("docs/metrics.md does not list %s", name)
		}
	}
}
