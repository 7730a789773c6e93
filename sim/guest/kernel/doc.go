// SPDX-License-Identifier: Apache-2.0

// Package kernel is an agent's way to the simulated kernel of its node: the edges of dataplane/steer,
// dataplane/nat and dataplane/sock, over calls to sim/kernel.
//
// It decides nothing: what to change and in which order is the shipped code's. It promises that an error of the kernel
// comes back as the errno that Linux would give. Settings of network interfaces and the cloud trial's default route are
// not modelled. It builds for guests and natively. Start reading at Kernel.
package kernel
