// SPDX-License-Identifier: Apache-2.0

// Package mutants keeps bugs to be planted in the code that ships, one place each, to see whether the simulator's rules
// catch them.
//
// Production code knows nothing of them: a planted bug is a text beside it (planted/*.mutant), written like a patch with
// its surroundings. All of them go into one program by way of `go build -overlay`; each is guarded by its name, and the
// name that is on is chosen when a process starts (package active). With none chosen the program does what the source
// says. releases/ has in the same way what an earlier release did, for upgrades while the world goes on.
//
// It promises that a bug which no longer applies to the source is named, and where, and that bugs which change the same
// lines are refused. Start reading at Mutant, then Overlay; Hunt shows which bugs are caught.
package mutants
