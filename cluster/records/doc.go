// SPDX-License-Identifier: Apache-2.0

// Package records answers for the record over the API (RecordService): what is there, how it came to be, that
// it changed; and it takes what other members hand to the leader.
//
// It knows how the record's rows become documents (api/records). It promises that a page is of one revision,
// which it names; that pages, watches and waits are bounded, whatever is asked; and that errors of proposals
// keep their meaning on the way between members. Who may call what is decided in cluster/admin.
//
// Start reading at Service; kinds.go lists the kinds, render.go and its neighbours make the documents.
package records
