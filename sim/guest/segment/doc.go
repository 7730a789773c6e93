// SPDX-License-Identifier: Apache-2.0

// Package segment is an agent's way to the simulated segments that its node is in: the edge of dataplane/l2, over the links
// of sim/segment. It decides nothing. Groups are not joined: segments carry IPv4 alone.
package segment
