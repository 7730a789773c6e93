// SPDX-License-Identifier: Apache-2.0

// Package dev runs the whole of Fairlead in one process on one machine, without root: three members that agree
// by Raft over loopback, a small BGP switch, and an agent without a kernel for every node that the manifests
// name. Everything but switch and kernel is what ships.
//
// Start reading at Run; group.go has the members, nodes.go the agents, picture.go what is shown and when all
// of it agrees, control.go how another process kills and starts members.
package dev
