// SPDX-License-Identifier: Apache-2.0

// Package httpd speaks HTTP over simulated connections for models, which have no goroutines: a server calls a function
// for each request, and the answer is given then or at any later time, in pieces if wanted.
//
// A connection carries one request: its head is the hello, its body the data up to the end. The answer is its head,
// its body and the end; a reset breaks it off. Start reading at Serve and Call.
package httpd
