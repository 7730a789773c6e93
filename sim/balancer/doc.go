// SPDX-License-Identifier: Apache-2.0

// Package balancer plays outside load balancers and the drivers that look after them, in a simulated world.
//
// A driver knows balancers by their identities and what is on them: what we put there, and what others did. It promises
// to do what it answers; to keep its hands off what others put there, unless a call has it set a balancer as a whole, as
// only a planted bug does; and to refuse loudly what no sound member sends: calls without an attempt, with one that was
// used before, or about balancers that it does not know or was not asked for. Everything else may go wrong: see Fault. In
// particular, what a call does may be done after its caller has given up, whatever was done since; attempts that run back
// are counted, and carried out.
//
// Start reading at Driver; call.go is how a call goes, effect.go what it does.
package balancer
