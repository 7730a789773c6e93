// SPDX-License-Identifier: Apache-2.0

// Package traffic is the clients of a simulated world: they dial addresses that users were given, and publish where each
// request ended (event.Flow).
//
// It knows switches, kernels and endpoints by what they answer, and nothing of the code under test. It promises that each
// client draws from a stream of its own, and that whether a request should have been served is what a Truth says, which
// is taken from the objects in the API server alone: Cluster is one. Start reading at Traffic.
package traffic
