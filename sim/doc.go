// SPDX-License-Identifier: Apache-2.0

// Package sim runs the shipped code in simulated worlds and judges them: one integer repeats a run, event by event.
//
// It joins the parts: a world has members and agents as wasm processes (stage, vm), models of everything else (kube,
// fabric, kernel, balancer, network, disk), a scenario that says what users do and what goes wrong, checkers and a
// trace. Nothing in it is real but the code under test. Start reading at Run, then world.go; README.md is for people
// who use it.
package sim
