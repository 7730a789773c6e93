// SPDX-License-Identifier: Apache-2.0

// Package active holds which planted bug is on in a process, and which release the process plays. Only overlays of
// package mutants import it; it is in no program that is built from the source alone.
package active

// What was chosen when the process started. A simulated process is alone in its program and chooses once.
var mutant, release string //nolint:gochecknoglobals // see above

// Choose says what is on, before anything else runs. Empty names are none.
func Choose(theMutant, theRelease string) { mutant, release = theMutant, theRelease }

// Is tells whether a planted bug is on.
func Is(name string) bool { return mutant == name }

// Runs tells whether the process plays an earlier release.
func Runs(name string) bool { return release == name }
