// SPDX-License-Identifier: Apache-2.0

// Package flows counts the connections that come in to service addresses by way of a node, so that whoever drains it
// learns when it is at rest.
//
// It reads the kernel's connection tracking and never changes it. It promises that a count takes no memory for a
// connection, also of a million, and that connections of the node's own processes and of the cluster's pods are left
// out: those come by no switch. What counts is pure (Tally), as is what the kernel's messages mean (parse.go); reading
// them is Reader (linux). Start reading at Tally.
package flows
