// SPDX-License-Identifier: Apache-2.0

// Package check judges a simulated world by the rules of the design, S1 to S28 and L1 to L4: a file each.
//
// It knows what can be seen from outside (package event) and keeps for each rule an account of the truth of its own,
// simpler than the code under test. Of that code it uses the record alone: the Record replays what members applied and
// S1 holds them to it. It promises that equal events give equal violations, that a violation is told at the event or
// tick that shows it, and that Counts tells how often each rule was put to the test, so that silence is not taken for
// health. A rule has to hold through faults; what cannot be asked of somebody during a fault is asked of everybody
// whom event.FaultBegan does not name.
//
// Start reading at Set; scene.go is what is seen to be the case, majority.go who must have a vote, recall.go who may be silent, kube.go what users
// asked for, record.go what the group agreed on.
package check
