// SPDX-License-Identifier: Apache-2.0

// Package netnstest gives tests network namespaces of their own, in which they may do what they like: nothing that
// happens there is seen outside, and all of it goes when the test ends.
//
// A topology is built from New and Join. Namespace.Do runs Go code inside (sockets opened there stay there),
// Namespace.Run a program, and Serve, Listen and Dial what is short for it. Where the machine allows no namespaces, New skips the test by
// name, or fails it if FAIRLEAD_REQUIRE_ROOT=1. Main is for packages whose tests dial, from the process's own namespace, what nobody serves.
package netnstest
