// SPDX-License-Identifier: Apache-2.0

// Package nat translates packets to service addresses into packets to endpoints, with one nftables table of its own,
// `inet fairlead-nat`.
//
// It knows what Kubernetes promises of a Service's load-balancer addresses and node ports, and how to say it with maps: a packet costs
// the same few lookups whatever the number of Services, and a change touches the elements of the Services that changed.
// It promises that a change comes at once for all packets, by one transaction, that established connections are never
// disturbed (but UDP flows to endpoints that left are ended, so that clients move), that what it finds after a restart
// is adopted without a gap, that what others do to the table is put right, and that nothing outside it is written.
//
// The plan is pure: Planner turns Services into a Ruleset of plain values and tells the Change from one to the next;
// layout.go has the fixed chains, nodeports.go those of node ports, service.go what a Service adds. Carrying it out is NAT (linux). Start reading at
// Planner, then NAT.Apply; docs/nat.md draws the way of a packet.
package nat
