// SPDX-License-Identifier: Apache-2.0

// Package spelling finds what somebody may have meant who wrote a word that is not known.
package spelling

import (
	"cmp"
	"slices"
	"strings"
)

// few is how many words are offered at the most.
const few = 3

// Near lists up to three of some words that may be meant by another one, the likeliest first.
func Near(want string, words []string) []string {
	apart := map[string]int{}
	var near []string
	for _, w := range words {
		if n := Distance(strings.ToLower(want), strings.ToLower(w)); n <= 1+len(want)/3 && !slices.Contains(near, w) {
			apart[w], near = n, append(near, w)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(apart[a], apart[b]) })
	return near[:min(few, len(near))]
}

// Meant is what to say of a word that is not known: "; did you mean A or B?", or nothing.
func Meant(want string, words []string) string {
	if near := Near(want, words); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}

// Distance is how many bytes must be put in, left out or changed to make one text of another (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := left
			if a[i] != b[j] {
				change++
			}
			left = row[j+1]
			row[j+1] = min(change, left+1, row[j]+1)
		}
	}
	return row[len(b)]
}
