// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// concurrent is what only goroutines need: one that is started, a channel, or an import.
var concurrent = regexp.MustCompile(`(?m)^\s*go [\w(]|\Wgo func\(|\Wchan\W|"sync["/]|"golang\.org/x/sync/|"testing/synctest"|"net/http/httptest"|\.Parallel\(\)`)

// withGoroutines are the packages that the race detector has something to see in: one of their files, tests included, has goroutines.
// deploy is none, as e2e: its tests start programs, in which the detector does not look.
func withGoroutines(units []string) ([]string, error) {
	var found []string
	for _, pkg := range units {
		folder := strings.TrimPrefix(pkg, module+"/")
		if folder == "deploy" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			if concurrent.Match(text) {
				found = append(found, pkg)
				break
			}
		}
	}
	return found, nil
}

// race runs the tests of packages with goroutines under the race detector, each property with a fifth of its draws. `make lint` has vetted them.
func (e *executor) race(ctx context.Context, units []string) error {
	packages, err := withGoroutines(units)
	if err != nil {
		return err
	}
	e.options.goTest = slices.Concat([]string{"-race", "-short", "-vet=off"}, e.options.goTest)
	return e.goTest(ctx, packages, allTests)
}
