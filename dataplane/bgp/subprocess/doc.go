// SPDX-License-Identifier: Apache-2.0

// Package subprocess runs a BGP speaker in a process of its own: whatever ends that, the process that wants paths announced lives on.
//
// What a neighbour sends is read by somebody else's code, and a panic of it ends the process in which it runs. A member's vote, its API and its
// record, and what an agent has carried out, must not depend on that. So Speaker starts the same program again, as a child that does
// nothing but speak, and tells it what to announce. A child that ended is started again, waiting longer each time, and is told everything anew;
// what switches kept of its sessions meanwhile is what they keep of any speaker that restarts (RFC 4724, RFC 9494).
//
// Nobody takes over a child: it leaves its sessions, without a word, when its parent closes the connection or is gone.
//
// Start reading at Speaker, then Serve for the child, and message.go for what they say.
package subprocess
