// SPDX-License-Identifier: Apache-2.0

// Package scenario is what happens in a run: faults and what users do, over virtual time.
//
// A Scenario is plain data. It knows how to be drawn from a seed, read and written as a file that people edit, checked,
// shrunk to what a failure needs, and played on a stage. It promises that equal seeds draw equal scenarios; that faults
// of each kind and the work of users are drawn from streams of their own, so that one changes nothing in another; and
// that what was drawn is valid.
//
// rapid draws: Generate is a generator for its properties, and Draw evaluates the same code from streams of a seed.
// Its shrinking cannot be had outside of tests (rapid.Check asks the testing package for flags and writes files beside
// the test), and it would shrink what was drawn rather than what a person has written. Shrink works on Scenarios.
//
// Start reading at Scenario, then Draw, Play and Shrink.
package scenario
