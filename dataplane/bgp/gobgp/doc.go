// SPDX-License-Identifier: Apache-2.0

// Package gobgp speaks BGP: it makes GoBGP, as a library, announce what dataplane/bgp wants announced.
//
// It knows GoBGP's server, and how to leave a session so that the switch keeps our paths. What GoBGP shows of itself,
// its table and its peers, is read back before every change; memory holds only what GoBGP does not tell. Several
// speakers may live in one process. Nothing that a peer announces is accepted.
//
// Start reading at Speaker.Apply, then session.go for how a session ends and comes back.
package gobgp
