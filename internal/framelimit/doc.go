// SPDX-License-Identifier: Apache-2.0

// Package framelimit bounds what the connections to a port have its server do, whatever they send: frames of HTTP/2 that ask for
// nothing, such as SETTINGS without end, cost a server as much as calls do, and no call is there yet that could be refused.
//
// Whoever comes has a Budget, by the name under which he comes, for all of his connections together. Each frame costs something,
// and headers by their length. Whoever has spent his Budget is not closed but read more slowly: that costs no processor, TCP tells
// the sender, and what was meant well arrives late rather than never. Reading goes on within a second whatever is owed, so that all
// that ends silent connections works as ever. It knows no certificates: a Who tells it under which name a connection comes. Start
// reading at Configure; what a frame costs is in follower.go.
package framelimit
