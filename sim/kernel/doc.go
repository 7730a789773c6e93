// SPDX-License-Identifier: Apache-2.0

// Package kernel is the kernels of the nodes of a simulated world.
//
// A Kernel knows routing rules, routes, and nftables tables, as agents and others make them. It promises to refuse what
// Linux refuses (with the errno that Linux gives), to publish event.Refused for what no agent should ever ask for and
// event.Foreign when an agent changes what does not bear our mark, to lose everything at a reboot, and to walk packets
// through what is there: Deliver tells where one ends up, and event.Steered which addresses are steered as a whole. It
// takes nothing from the code under test but the vocabulary of package message.
//
// Start reading at Kernel, then Deliver; nft.go has transactions, walk.go the way of a packet through them.
package kernel
