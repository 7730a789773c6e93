// SPDX-License-Identifier: Apache-2.0

// Package dice draws what scenarios are made of from rapid, evenly.
//
// It knows how to turn rapid's data into choices that are equally likely, which rapid's own integers are not: they
// prefer small ones, and a day of simulation would begin with everything at once. It promises that less data is a
// simpler choice: the first of a list, the smallest number, the shortest time. Start reading at Dice.
package dice

import (
	"math/bits"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// Dice draws from one stream.
type Dice struct{ t *rapid.T }

// Of draws from a test case of rapid, which may be an example's.
func Of(t *rapid.T) Dice { return Dice{t} }

// Below draws a number from 0 to n-1, each as likely as another, as nearly as makes no difference.
func (d Dice) Below(what string, n int) int {
	if n < 2 {
		return 0
	}
	coin, number := rapid.Bool(), 0
	for range bits.Len(uint(n-1)) + 6 { // some more bits than needed even out the remainder
		number <<= 1
		if coin.Draw(d.t, what) {
			number++
		}
	}
	return number % n
}

// From draws a number from least to most.
func (d Dice) From(what string, least, most int) int { return least + d.Below(what, most-least+1) }

// Chance is true in so many of a hundred cases.
func (d Dice) Chance(what string, percent int) bool { return 99-d.Below(what, 100) < percent }

// Time draws a time from least to most, in steps of 100 ms (of 1 ms below a second).
func (d Dice) Time(what string, least, most time.Duration) time.Duration {
	step := 100 * time.Millisecond
	if most < time.Second {
		step = time.Millisecond
	}
	return least + time.Duration(d.Below(what, int((most-least)/step)+1))*step
}

// Pick draws one of a list, which is not empty.
func Pick[T any](d Dice, what string, from []T) T { return from[d.Below(what, len(from))] }

// Some draws n of a list, and gives them in the order of the list.
func (d Dice) Some(what string, from []string, n int) []string {
	left, out := slices.Clone(from), []string{}
	for range min(n, len(from)) {
		i := d.Below(what, len(left))
		out = append(out, left[i])
		left = slices.Delete(left, i, i+1)
	}
	slices.SortFunc(out, func(a, b string) int { return slices.Index(from, a) - slices.Index(from, b) })
	return out
}
