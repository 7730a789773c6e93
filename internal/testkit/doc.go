// SPDX-License-Identifier: Apache-2.0

// Package testkit runs the properties of tests, waits for what they wait for, and keeps what is logged. Only tests import it.
//
// It knows where rapid's draws begin. It promises that a property draws the same values on every run of the same tree,
// on any machine and however busy that is: the seed is Seed, as many checks are made as were asked for (rapid by itself
// makes fewer of them when the time of a test runs out), and a failure leaves no file with which the next run would begin.
// What fails is therefore repeated by one command, which is in the output of the failure:
//
//	go test fairlead.io/fairlead/fsm -run '^TestPropertySnapshotResumesLog$'
//
// rapid adds the seed of the check that failed: with -rapid.seed=N as well, that check comes first.
// The promise is about what is drawn. A property keeps it by drawing from nothing but its rapid.T, and never
// from a map's order, a clock, or a goroutine's progress.
//
// A seed that was chosen counts instead of Seed: -rapid.seed=N or RAPID_SEED=N. With 0 each run draws other values, as
// rapid does by itself; look for bugs with it, and never decide by it.
//
// Check is for nearly all properties, CheckUntil for those that must have met certain cases, and Random for tests that are no properties
// and draw nevertheless. hack/layers sees to it that tests use nothing else.
//
// If FAIRLEAD_DRAWS names a folder, by its absolute path, each process adds a file to it with a line for each call of Check and each round of CheckUntil:
//
//	package test#call checks digest
//
// where digest depends on all values that were drawn, in their order. The sorted lines of two runs of one tree are
// equal, so a runner compares them, or their hash. Run tests with -count=1 for it: go test has no lines of a result that it cached.
package testkit
