// SPDX-License-Identifier: Apache-2.0

// Command demo shows what users keep while parts are being killed: it builds a small data centre out of network
// namespaces, has 20 clients ask two Services all along, and tells for each mishap how many requests failed.
//
//	client 198.51.100.0/24
//	   │
//	switch (BIRD, kernel ECMP) 192.0.2.1 ──── LAN 192.0.2.0/24 ─┬─ n1 n2 n3  .11 .12 .13   agent; pods in 10.1.N.0/24
//	                                                            ├─ m1 m2 m3  .21 .22 .23   members
//	                                                            └─ kube      .30           etcd, kube-apiserver
//
// All parts are the real ones: members and agents are processes of the shipped binary, each in a network of its own.
// Answers must leave nodes through the switch although that is not their default gateway.
//
// Everything lives in a sandbox (internal/sandbox), so that nothing is left however the demo ends. Start reading at
// steps; world.go has what stands, and when it is right.
package main
