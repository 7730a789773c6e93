// SPDX-License-Identifier: Apache-2.0

package testkit_test

import (
	"regexp"
	"slices"
	"testing"
)

var verdict = regexp.MustCompile(`--- (?:PASS|FAIL): \S+|\S+_test\.go:\d+: .*`)

// What is shared lives to the end and fails the part that uses it, which is then the last one.
func TestPartsShareWhatFailsThem(t *testing.T) {
	out, _, passed := play(t, "parts", nil)
	got := verdict.FindAllString(regexp.MustCompile(`_test\.go:\d+`).ReplaceAllString(out, "_test.go:1"), -1)
	want := []string{
		"subject_test.go:1: the server ended", "--- FAIL: TestSubject", "--- PASS: TestSubject/first", "subject_test.go:1: refused", "--- FAIL: TestSubject/second",
	}
	if slices.Sort(got); passed || !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("passed %t: %q\n%s", passed, got, out)
	}
}
