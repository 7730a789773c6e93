// SPDX-License-Identifier: Apache-2.0

// Package fabric is the border switches of a simulated world: what members announce to them, and where packets go.
//
// A Switch knows BGP short of its bytes (package message): sessions with hold timers, a RIB per neighbour, best paths
// and ECMP, graceful restart and its long-lived kind. It promises to do what BIRD and FRR were measured to do (see
// docs on BGP restarts), each by its own Options; that it refuses, and publishes event.Refused for, whatever no real
// switch would take; and that its FIB follows its RIB, late. It draws from its own stream of randomness only.
//
// Start reading at Switch, then session for one connection, rib for the choice of paths.
package fabric
