// SPDX-License-Identifier: Apache-2.0

// Package prober asks addresses whether they answer, for package health: over TCP, HTTP, HTTPS, ICMP and UDP, by sockets that the
// programs at sockets leave alone.
//
// It promises to end with its context, to read no more than the head of an answer, and to tell what this host could not do from what
// the address did not. Start reading at Prober.Probe.
package prober
