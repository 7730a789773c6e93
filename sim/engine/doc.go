// SPDX-License-Identifier: Apache-2.0

// Package engine is the heart of a simulated world: one queue of events, one clock, and randomness from one seed.
//
// It knows nothing of what happens in the world. It promises that everything is done by one goroutine, in order of
// time and, at the same time, in the order in which it was asked for; that each named stream of randomness depends
// on the seed and its name alone, so that drawing more from one changes nothing in another; and that equal seeds
// give equal runs. Start reading at World.
package engine
