// SPDX-License-Identifier: Apache-2.0

// Package admin is the API port of a member: the server that all services are mounted on, who may call what,
// the raft and join services themselves, and the client that people's tools and other members use.
//
// It knows certificates' roles (one table, access.go), what a change does to the quorum (pure, quorum.go), and
// how to hand a request on to the leader. It does not know Raft: the member is a Group, with plain values.
//
// It promises that no handler runs for a caller whom the table does not admit; that what a handler sees as the
// actor was proven by a certificate, also behind a member that handed the request on; that a request is handed
// on at most once; and that whatever a person can mend is refused with what, why and remedy (Refusal).
//
// Start reading at Group, then Judge, then Server.
package admin
