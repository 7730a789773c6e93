// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
)

// notFast is in the reason of every test that testkit.NotFast leaves out.
const notFast = "not among the fast tests"

// leftOut lists by package the tests that skipped themselves under -set fast, in whole or in part.
func (r *report) leftOut() map[string][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := map[string][]string{}
	for _, s := range r.skipped {
		test, _, _ := strings.Cut(s.test, "/")
		if !slices.Contains(left[s.pkg], test) {
			left[s.pkg] = append(left[s.pkg], test)
		}
	}
	return left
}

// stillLeft is what is left of some tests once others ran: it lacks those that passed without leaving anything out, and that drew nothing of
// which they would draw more in another run. drew are these, as drawn gives them.
func (r *report) stillLeft(left map[string][]string, drew map[string]bool) map[string][]string {
	skipped := r.leftOut()
	r.mu.Lock()
	defer r.mu.Unlock()
	still := map[string][]string{}
	for pkg, tests := range left {
		for _, test := range tests {
			key := pkg + " " + test
			if !r.whole[key] || drew[key] || slices.Contains(skipped[pkg], test) {
				still[pkg] = append(still[pkg], test)
			}
		}
	}
	return still
}

func writeLeft(path string, left map[string][]string) error {
	text, err := json.MarshalIndent(left, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

func readLeft(path string) (map[string][]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	left := map[string][]string{}
	return left, json.Unmarshal(text, &left)
}
