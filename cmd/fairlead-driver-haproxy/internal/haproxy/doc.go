// SPDX-License-Identifier: Apache-2.0

// Package haproxy is a driver of HAProxy: it puts backends as servers on a backend of a running HAProxy, through the
// runtime API of its stats socket, beside servers that are not its own.
//
// It knows HAProxy's commands and what they answer, which servers carry its mark, and which of them it was asked for, in
// a file of its own. It promises to touch no server without its mark, to answer success only after it has read back
// that HAProxy has it so, and to put back what HAProxy forgot because it was restarted or reloaded. A model of
// HAProxy may stand where the socket is. Start reading at Driver, then plan.go for what HAProxy is told, job.go for what
// becomes of a call, and round.go for how calls share what is slow.
package haproxy
