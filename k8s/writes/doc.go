// SPDX-License-Identifier: Apache-2.0

// Package writes knows what everybody has in common who keeps many objects of an API server as they shall be: whose
// turn it is (Queue), how a write ended and what helps (FailureOf), when to leave the server alone (Brake), how much
// may be written at all (Bucket), and how often to insist (Pace).
//
// It has no clock and no goroutines: times are handed in, and nothing of it may be used by two goroutines at once.
// Start reading at Queue.
package writes
