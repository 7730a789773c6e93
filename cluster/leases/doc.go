// SPDX-License-Identifier: Apache-2.0

// Package leases decides which node answers for an address on its segment (design §7 l2), and sees to it that never two
// do (S10).
//
// The record says who holds the lease of an address, and under which fence. For how long the holder may use it is agreed
// between the two alone: it may from the answer to a renewal until the lease's term after it sent that, by its own clock.
// The leader answers only after a majority confirmed, later than the renewal came, that it leads. So it knows when a
// lease that it does not answer for any more is over: the term and a margin for clocks after its last answer. A new leader,
// which does not know of its predecessor's answers, counts from its own take-over, which was later than all of them.
//
// A lease ends earlier by its holder's word: the leader leaves it out of an answer, and the next renewal says that it is
// not held any more. A lease that its holder keeps when it cannot reach the group ends by word only, the holder's or
// an operator's (a hold that is released).
//
// Owners stay: a lease moves when its holder falls silent, may not answer or cannot be reached on its segment, not because
// another node would be as good. New ones go to the node that answers for the fewest addresses.
//
// Start reading at Keeper, which is pure; Leader is the loop around it and what renewals are answered by.
package leases
