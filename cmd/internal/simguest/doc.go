// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

// Command simguest is a process of a simulated world: a member or an agent as it ships, over the edges of that world.
// It is built for wasip1 by package sim, which runs it.
//
// member.go and agent.go wire the two roles; network.go is how processes reach each other, watch.go what they let the
// world's checkers see. Nothing in here decides anything.
package main
