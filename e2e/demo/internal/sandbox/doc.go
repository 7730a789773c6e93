// SPDX-License-Identifier: Apache-2.0

// Package sandbox gives a program a small world of its own: mounts, processes and networks that nobody else sees.
//
// It knows Linux namespaces and the processes in them. It promises that nothing outside is touched, and that nothing is
// left: the program that is run inside is the first process of a pid namespace, so that the kernel ends all others with
// it, however it ends, and with the last process go the networks. Start reading at Enter; Namespace is a network, Process
// a program in one.
package sandbox
