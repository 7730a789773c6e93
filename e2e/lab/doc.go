// SPDX-License-Identifier: Apache-2.0

// Package lab runs real parts together for tests: members as processes of the shipped binary, BIRD as the switch,
// agents without a kernel for the nodes, and manifests that a test edits.
//
//	              ┌───────────────┐
//	              │ BIRD 127.0.0.1│   AS 65001, ADD-PATH, merged paths
//	              └───┬───┬───┬───┘
//	127.0.0.11  m1 ───┘   │   └─── m3  127.0.0.13      AS 65000
//	                      m2  127.0.0.12
//
// All of it lives on the loopback of a network namespace that the test binary makes for itself (see Main), so that
// addresses and firewall rules are the test's own. A Segment has nodes with agents as processes, in namespaces of their
// own, and a wire that is read. Start reading at New.
package lab
