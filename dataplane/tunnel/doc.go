// SPDX-License-Identifier: Apache-2.0

// Package tunnel joins hosts by VXLAN, so that they reach each other's proxy ports whatever carries the packets of their pods.
//
// It knows one interface, fairlead-tun, with the host's tunnel addresses, an entry of the neighbour table and one of the forwarding
// table for each other host, and a small nftables table, inet fairlead-tunnel. It promises that what it finds after a restart is
// adopted without a gap, that hosts are added before others are removed, that what bears its name and is somebody else's is left alone
// and told, and that packets of nobody but the hosts that it was told of come in.
//
// The plan is pure: Want says what a State asks for, Plan what has to change; Services is what the proxy ports lead to, for package nat.
// Carrying out is Tunnel over an Edge (linux). Start reading at Plan, then Tunnel.Apply.
package tunnel
