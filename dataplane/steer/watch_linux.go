// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"

	"github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// watchBuffer is how much the kernel may keep for us while we are busy; what does not fit is said to be lost.
const watchBuffer = 4 << 20

// Watch implements Edge: it hears of rules, routes, interfaces, addresses and nftables.
func (k *linux) Watch(ctx context.Context, ready chan<- struct{}, hear func(Event)) error {
	routing, err := k.subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_IPV4_ROUTE,
		unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	if err != nil {
		return remedy(err)
	}
	filtering, err := k.subscribe(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
	if err != nil {
		routing.Close()
		return remedy(err)
	}
	close(ready)
	stop := context.AfterFunc(ctx, func() {
		routing.Close()
		filtering.Close()
	})
	defer stop()
	var both sync.WaitGroup
	var errs [2]error
	both.Go(func() {
		errs[0] = receive(ctx, routing, hear, func(m syscall.NetlinkMessage) { k.heardRouting(m, hear) })
	})
	both.Go(func() {
		errs[1] = receive(ctx, filtering, hear, func(m syscall.NetlinkMessage) { k.heardFilter(m, hear) })
	})
	both.Wait()
	return errors.Join(errs[:]...)
}

func (k *linux) subscribe(protocol int, groups ...uint) (s *nl.NetlinkSocket, err error) {
	err = netns.Do(k.o.Namespace, func() (err error) {
		s, err = nl.Subscribe(protocol, groups...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	// Without the right to a larger buffer, events are lost sooner, and said to be.
	_ = unix.SetsockoptInt(s.GetFd(), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, watchBuffer)
	return s, nil
}

// receive hands on messages until ctx ends.
func receive(ctx context.Context, s *nl.NetlinkSocket, hear func(Event), take func(syscall.NetlinkMessage)) error {
	for {
		messages, from, err := s.Receive()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENOBUFS):
			hear(Event{Lost: true})
		case err != nil:
			return err
		case from.Pid != nl.PidKernel:
		default:
			for _, m := range messages {
				take(m)
			}
		}
	}
}

// heardRouting takes one message of the routing groups.
func (k *linux) heardRouting(m syscall.NetlinkMessage, hear func(Event)) {
	switch m.Header.Type {
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		r, err := parseRule(m.Data)
		hear(Event{Rule: &r, Gone: m.Header.Type == unix.RTM_DELRULE, Lost: err != nil})
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		r, err := k.parseRoute(m.Data)
		k.mu.Lock()
		matters := k.q.Concerns(r, k.tables)
		k.mu.Unlock()
		if matters || err != nil {
			hear(Event{Route: &r, Gone: m.Header.Type == unix.RTM_DELROUTE, Lost: err != nil})
		}
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		hear(k.ofInterface(int(nl.DeserializeIfInfomsg(m.Data).Index)))
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		hear(k.ofInterface(int(nl.DeserializeIfAddrmsg(m.Data).Index)))
	}
}

// ofInterface is the event of a change of an interface or its addresses. Those that matter take routes along in silence.
func (k *linux) ofInterface(index int) Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.facing[k.names[index]] {
		return Event{Lost: true}
	}
	return Event{Node: true}
}

// heardFilter takes one message of nftables. Table, chain, rule, set and element all name their table first.
func (k *linux) heardFilter(m syscall.NetlinkMessage, hear func(Event)) {
	if m.Header.Pid == k.filter.port.Load() || len(m.Data) < nl.SizeofNfgenmsg {
		return
	}
	if m.Header.Type&0xff == unix.NFT_MSG_NEWGEN {
		return
	}
	ad, err := netlink.NewAttributeDecoder(m.Data[nl.SizeofNfgenmsg:])
	if err != nil {
		return
	}
	for ad.Next() {
		if ad.Type() == unix.NFTA_TABLE_NAME && ad.String() == TableName {
			hear(Event{Filter: true})
		}
	}
}
