// SPDX-License-Identifier: Apache-2.0

// Package machine is the real machine under a member and under an agent: data folder, sockets with mutual TLS, BGP
// speaker, probes, the kernel.
//
// It decides nothing: packages member and node say what they need in their Edges, and are the same over a simulated
// machine. Start reading at Member and Agent.
package machine
