// SPDX-License-Identifier: Apache-2.0

// Package birdtest runs BIRD 2, a BGP switch that none of us wrote, as a process of a test, and reads its table.
//
// BIRD runs on loopback, with its own configuration and control socket, without root and without touching the kernel's
// routes. Several speakers are told apart by their address (127.0.0.11, 127.0.0.12, …) or, sharing one address, by the
// port at which they listen. BIRD asks nobody how to reach next hops: what counts is its ranking, which Route shows.
//
// Start reading at Start; Bird.ECMP is what most tests ask for.
package birdtest
