// SPDX-License-Identifier: Apache-2.0

package l2

import (
	"context"
	"net/netip"
)

// Edge is what L2 touches of a machine.
type Edge interface {
	// Interfaces lists those that can answer for addresses.
	Interfaces() ([]Interface, error)
	// Watch calls changed whenever they may have changed, at least once, until ctx ends or an error.
	Watch(ctx context.Context, changed func()) error
	// Open makes a port of an interface.
	Open(Interface) (Port, error)
}

// Port sends and receives on one interface. Its methods may be called from any goroutine.
type Port interface {
	// Receive waits for a frame of ARP or Neighbor Discovery and reads it into b. Errors: the port was closed, or its
	// interface is gone.
	Receive(b []byte) (n int, err error)
	// Send sends a frame. It does not wait: what does not fit into the interface's queue is an error.
	Send(frame []byte) error
	// Join has what is sent to a group arrive, as questions for addresses of IPv6 are (SolicitedNode); Leave ends that.
	Join(group netip.Addr) error
	Leave(group netip.Addr) error
	Close() error
}
