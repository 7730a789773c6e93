// SPDX-License-Identifier: Apache-2.0

// Package netns runs code inside another network namespace of this machine.
//
// Sockets that are opened there, files of /proc/sys/net that are read there and programs that are started there
// belong to that namespace for as long as they live; the rest of the process never notices. Start reading at Do.
package netns
