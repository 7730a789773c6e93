// SPDX-License-Identifier: Apache-2.0

// Package message is what an agent and the simulated kernel of its node say to each other: system calls, short of
// netlink's bytes.
//
// It knows rules, routes, nftables transactions, and what the kernel tells of changes. Both ends share it; it judges
// nothing: that is the kernel's part. Frames are a length and JSON. Start reading at Request, then Answer.
package message
