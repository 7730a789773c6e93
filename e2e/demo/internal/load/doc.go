// SPDX-License-Identifier: Apache-2.0

// Package load asks a service for answers all along, and counts what failed.
//
// It knows clients that open a new connection from a new port at a fixed pace and never try twice, and what a correct
// answer is. It promises that every connection begun is recorded once, with the time at which it began; that a late
// client drops beats rather than bunching them; and that an answer counts only when it is whole, correct and in time.
// Counting is pure: Count takes the requests and who carried each of them.
//
// Start reading at Generator.Run; tally.go counts, dial.go opens connections.
package load
