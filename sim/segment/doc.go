// SPDX-License-Identifier: Apache-2.0

// Package segment is the Ethernet segments that the nodes of a simulated world are in, apart from the network by which
// processes reach each other.
//
// A Segment carries frames to all whom they are for. A Link is a node's interface in it: it has a carrier or not, what it sends
// arrives or not, and it answers for the node's own address, as a kernel does. A Host is somebody else who asks who has an
// address. What a node says of other addresses than its own is published as event.Claim when it goes onto the wire, and
// frames that no agent should ever send as event.Refused.
//
// It takes nothing from the code under test. Frames are ARP's (RFC 826). Start reading at Segment.
package segment
