// SPDX-License-Identifier: Apache-2.0

// Package client has people and programs call the API of a simulated group.
//
// It knows who may call what and how an error is to be taken: whoever was refused may ask another member, and what
// nobody answered may have been done all the same. It promises that each call which counts is framed by
// event.CallBegan and event.CallEnded, whose outcome says no more than the caller can know. There are three who call: the
// Hand, which writes to the record what no planner does yet; Registers, whose reads and writes must be linearizable; and
// the Operator. Start reading at Group, then call.go.
package client
