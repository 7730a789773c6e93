// SPDX-License-Identifier: Apache-2.0

// Package enrol is how agents get their first certificate, and how agents and members keep theirs fresh.
//
// It knows what proves that a caller runs on a node: a ServiceAccount token that the Kubernetes API vouches for, or a
// one-time token that an operator offered. It promises that a certificate is given only for a node that was proven,
// that a one-time token is good once and for its time, that no key and no token crosses the wire or reaches a log where
// it need not (a one-time token's SHA-256 is all that the group ever keeps), and that what it refuses it counts and logs.
//
// Start reading at Service, the members' side; Renewer is the holders'. Expiry is what the leader does.
package enrol
