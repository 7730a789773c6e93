// SPDX-License-Identifier: Apache-2.0

// Package network is what lies between the machines of a simulated world: connections that are reliable and ordered
// like TCP's, over links that take their time and can be cut.
//
// It knows machines and ports by name and nothing of what is said. It promises that what one end sends arrives at the
// other in order, once, and unchanged, or that the connection breaks; that a dial carries its first words along and
// proves who the dialling machine is, as mutual TLS would; that a cut link holds everything back, in the directions
// in which it is cut, until it heals or the connection is given up; and that a machine without power says nothing,
// while one whose process was killed resets its connections.
//
// Start reading at Network, then Conn; Socket is how a process with system calls takes part.
package network
