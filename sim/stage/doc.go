// SPDX-License-Identifier: Apache-2.0

// Package stage puts a simulated world together: machines with their disks, clocks and processes, the network between
// them, and the models that stand for everything else.
//
// It knows who there is and what can be done to them; what is done when is the scenario's, what it means the checkers'.
// Start reading at Stage, then machine.go.
package stage
