// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"net/netip"
)

// ErrForeign says that somebody else has an interface of our name. It is left alone.
var ErrForeign = errors.New("the interface " + Interface + " is somebody else's")

// Edge is the kernel. One goroutine at a time uses it, but for Watch.
type Edge interface {
	// Read gives the interface, nil for none. Errors: ErrForeign.
	Read() (*Link, error)
	// Way gives the least MTU of the ways to hosts, in bytes. Hosts without a way do not count; 0 if none has one.
	Way(to []netip.Addr) (mtu int, err error)
	// Do makes one change of the interface.
	Do(Change) error
	// Guard puts our table in place, nil for none, if it is not as it should be; it tells whether it was not.
	Guard(*Rules) (changed bool, err error)
	// Watch calls changed whenever the interface may have changed, until ctx ends or it fails.
	Watch(ctx context.Context, changed func()) error
	Close()
}
