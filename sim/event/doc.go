// SPDX-License-Identifier: Apache-2.0

// Package event is the vocabulary of a simulated world: what can be seen to happen in it.
//
// Models, processes and the plan of faults publish events; checkers judge by them, and traces show them. An event is
// a plain value: it says what happened outside of the code under test, or what a process reported of itself, and never
// what should have happened. Names of processes, machines and switches are those of the world ("m1", "n3", "switch-a").
// A member m1 runs on a machine of its own, also called m1; the agent of node n1 on the machine n1, as process n1.
package event
