// SPDX-License-Identifier: Apache-2.0

// Package bgp decides what a BGP speaker of ours announces, to whom, and at which rank.
//
// It knows paths, peers and the rules for coming back and for stepping aside; it knows nothing of members, of Raft or
// of the record, since agents speak BGP too. It opens no socket and reads no file, and builds for wasip1: the speaker
// itself is dataplane/bgp/gobgp, the file of the last announced state is dataplane/bgp/appliedstate.
//
// It promises that equal input gives equal announcements on every speaker (attributes, path identifiers, order of
// steps), that a change adds before it removes, and that a peer is never opened onto a table that is still loading.
//
// Start reading at Desired for what is wanted, Plan for how to get there, and Announcer for when.
package bgp
