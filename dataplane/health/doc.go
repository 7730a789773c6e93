// SPDX-License-Identifier: Apache-2.0

// Package health finds out which listed addresses of policies answer this host (balancing §14), and which endpoints of Services that ask
// for it (K50). Other pods are Kubernetes' business.
//
// It knows what to probe and how often, and what that says of an address and a port. It promises that nothing is thought to be bad
// before a probe said so, here or on most of the other hosts; that what several policies ask for alike is probed once; that there
// are never more targets or probes under way than its limits; and that a port of which every address is bad has all of them used.
// Start reading at Checks, which says what is probed for a policy, ChecksOf for a Service, and Book, which decides what is thought; Checker carries out,
// over a Prober, of which package prober has the real one.
package health
