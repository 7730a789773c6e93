// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// Reader reads the connection tracking of a network namespace.
type Reader struct {
	Inside []netip.Prefix // who connects from there comes by no switch: pods
	SysNet string         // folder of the kernel's settings of networks; empty means /proc/sys/net
	NetNS  int            // file descriptor of the namespace; 0 for the process's own
}

// Count counts the open connections to some addresses. It reads all connections of the node, in time that grows with
// them, some microseconds each, and in memory that does not.
//
// Errors: the kernel has no connection tracking, or does not let this process read it; ctx ended.
func (r Reader) Count(ctx context.Context, to []netip.Addr) (Count, error) {
	t := &Tally{To: map[netip.Addr]bool{}, Inside: r.Inside, Own: map[netip.Addr]bool{}}
	for _, a := range to {
		t.To[a] = true
	}
	err := netns.Do(r.NetNS, func() error {
		if err := r.prepare(t); err != nil {
			return err
		}
		return dumpAll(ctx, t.Add)
	})
	if err != nil {
		return Count{}, fmt.Errorf("count flows: %w", err)
	}
	return t.Count, ctx.Err()
}

// Loads counts the connections that were translated to endpoints, given those of the count before; nil for none. It costs what Count does,
// and memory for each connection that it counts.
//
// Errors: as for Count.
func (r Reader) Loads(ctx context.Context, of []Endpoint, before map[uint32]bool) (*Loads, error) {
	l := &Loads{Of: make(map[Endpoint]Load, len(of)), Before: before, Now: make(map[uint32]bool, len(before))}
	for _, e := range of {
		l.Of[e] = Load{}
	}
	err := netns.Do(r.NetNS, func() (err error) {
		if l.Timeouts, err = r.allTimeouts(); err != nil {
			return err
		}
		return dumpAll(ctx, l.Add)
	})
	if err != nil {
		return nil, fmt.Errorf("count connections of endpoints: %w", err)
	}
	return l, ctx.Err()
}

// prepare reads what connections are judged by.
func (r Reader) prepare(t *Tally) error {
	own, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("list addresses: %w", err)
	}
	for _, a := range own {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			t.Own[ip.Unmap()] = true
		}
	}
	t.Timeouts, err = r.allTimeouts()
	return err
}

func (r Reader) allTimeouts() (out Timeouts, err error) {
	if out.TCP, err = r.timeouts("tcp_timeout_established", "tcp_timeout_unacknowledged", "tcp_timeout_max_retrans"); err != nil {
		return out, err
	}
	out.UDP, err = r.timeouts("udp_timeout", "udp_timeout_stream")
	return out, err
}

func (r Reader) timeouts(names ...string) (out []time.Duration, err error) {
	sysNet := r.SysNet
	if sysNet == "" {
		sysNet = "/proc/sys/net"
	}
	for _, name := range names {
		file := filepath.Join(sysNet, "netfilter/nf_conntrack_"+name)
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%w: the kernel's connection tracking is not there, or not to be read", err)
		}
		seconds, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, time.Duration(seconds)*time.Second)
	}
	return out, nil
}

func dumpAll(ctx context.Context, add func(Flow)) error {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := dump(ctx, family, add); err != nil {
			return err
		}
	}
	return nil
}

// dump reads the connections of one family. Those that come and go meanwhile may be missed, or met twice.
func dump(ctx context.Context, family uint8, add func(Flow)) error {
	req := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_CTNETLINK<<8|nl.IPCTNL_MSG_CT_GET, unix.NLM_F_DUMP)
	req.AddData(&nl.Nfgenmsg{NfgenFamily: family, Version: nl.NFNETLINK_V0})
	err := req.ExecuteIter(unix.NETLINK_NETFILTER, 0, func(message []byte) bool {
		if f, ok := parse(message); ok {
			add(f)
		}
		return ctx.Err() == nil
	})
	if err != nil && !errors.Is(err, nl.ErrDumpInterrupted) {
		return fmt.Errorf("read the connections: %w", err)
	}
	return nil
}
