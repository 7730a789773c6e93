// SPDX-License-Identifier: Apache-2.0

package nat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Watch implements Edge.
func (k *kernel) Watch(ctx context.Context, changed func()) error {
	events, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: k.netns})
	if err != nil {
		return explain("watch nftables", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = events.SetReadDeadline(time.Unix(1, 0)) })
	defer func() {
		stop()
		_ = events.Close() // it was only read
	}()
	if err := errors.Join(events.SetReadBuffer(readBytes), events.JoinGroup(unix.NFNLGRP_NFTABLES)); err != nil {
		return explain("watch nftables", err)
	}
	changed() // of what happened before we listened
	for {
		messages, err := events.Receive()
		if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch nftables: %w", err)
		}
		for _, m := range messages {
			if concerns(m, k.table.Name) && !k.owns(m.Header.PID) {
				changed()
			}
		}
	}
}

// concerns tells whether an event is of a table. The name of the table is the first attribute of whatever changed.
func concerns(m netlink.Message, table string) bool {
	if m.Header.Type>>8 != unix.NFNL_SUBSYS_NFTABLES || len(m.Data) < familyBytes || m.Data[0] != unix.NFPROTO_INET {
		return false
	}
	attributes, err := netlink.NewAttributeDecoder(m.Data[familyBytes:])
	if err != nil {
		return false
	}
	for attributes.Next() {
		if attributes.Type() == unix.NFTA_TABLE_NAME {
			return attributes.String() == table
		}
	}
	return false
}
