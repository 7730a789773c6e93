// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"fairlead.io/fairlead/internal/netnstest"
)

// Neighbour is a client on a segment.
type Neighbour struct {
	In        *netnstest.Namespace
	Four, Six netip.Addr

	segment *Segment
}

// neighbour makes a client at a switch.
func (s *Segment) neighbour(at *netnstest.Namespace, four, six netip.Addr) *Neighbour {
	n := &Neighbour{In: netnstest.New(s.lab.t, "client"), Four: four, Six: six, segment: s}
	plug(n.In, at, "client", netip.PrefixFrom(four, 24).String(), netip.PrefixFrom(six, 64).String())
	return n
}

// KeepAsking has it look for all addresses anew all along, until the returned function is called: who would answer is seen on
// the wire.
func (n *Neighbour) KeepAsking(every time.Duration) (stop func()) {
	t := n.segment.lab.t
	t.Helper()
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- n.In.Do(func() error { return n.ask(SegmentVIPs, every, end) }) }()
	return func() {
		t.Helper()
		close(end)
		if err := errors.Join(<-ended, n.segment.Wire.Err()); err != nil {
			t.Fatalf("ask on the segment: %v", err)
		}
	}
}

// Forget has it forget at which card an address is.
func (n *Neighbour) Forget(a netip.Addr) {
	_, _ = n.In.Try("ip", "neigh", "del", a.String(), "dev", "data") // it may not know
}

// Get connects to an address, once, and gives the name of the node whose pod answers.
func (n *Neighbour) Get(a netip.Addr, within time.Duration) (node string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err = n.In.Do(func() error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", netip.AddrPortFrom(a, 80).String())
		if err != nil {
			return err
		}
		defer c.Close()
		deadline, _ := ctx.Deadline()
		if err := c.SetDeadline(deadline); err != nil {
			return err
		}
		text, err := io.ReadAll(c)
		node = strings.TrimSpace(string(text))
		return err
	})
	return node, err
}
