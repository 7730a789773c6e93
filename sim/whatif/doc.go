// SPDX-License-Identifier: Apache-2.0

// Package whatif answers what would happen to the user's own cluster: it reads manifests, makes a simulated world of
// them for each mishap, and tells in plain words what each address would have seen.
//
// It knows how manifests become nodes, pods, switches and objects, which mishaps are worth asking about, and how to say
// what came of them. It promises that whatever it adds to the manifests or leaves out of them is said, that equal
// manifests and seeds give equal answers, and that what no address of the user's shows is not claimed. Times are those
// of a model: of the shipped code in a world with typical latencies, not of the user's hardware.
//
// Start reading at Ask; then Read (files), Cluster.stage (turning into a world), questions (the mishaps), account
// (what was seen) and Report (what is said).
package whatif
