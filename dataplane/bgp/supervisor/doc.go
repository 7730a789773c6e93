// SPDX-License-Identifier: Apache-2.0

// Package supervisor keeps a BGP speaker going that runs in a process of its own, a child: whatever ends that, whoever wants paths
// announced lives on.
//
// Speaker tells the child what to announce. A child that ended is started again, waiting longer each time, and is told everything anew;
// what switches kept of its sessions meanwhile is what they keep of any speaker that restarts (RFC 4724, RFC 9494). Serve is the
// child's end.
//
// It promises that nothing counts as announced, written or withdrawn of which only a child knew that has ended. How a child is started, and
// what speaks in it, is its caller's affair: package subprocess has processes and GoBGP.
//
// Start reading at Speaker, then message.go for what both ends say.
package supervisor
