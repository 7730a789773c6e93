// SPDX-License-Identifier: Apache-2.0

// Package subprocess runs GoBGP in a process of its own: whatever ends that, the process that wants paths announced lives on.
//
// What a neighbour sends is read by somebody else's code, and a panic of it ends the process in which it runs. A member's vote, its API and its
// record, and what an agent has carried out, must not depend on that. So New starts the same program again, as a child that does
// nothing but speak; package supervisor tells it what to announce, and starts it again when it ended.
//
// Nobody takes over a child: it leaves its sessions, without a word, when its parent closes the connection or is gone.
//
// Start reading at New, then Main for the child.
package subprocess
