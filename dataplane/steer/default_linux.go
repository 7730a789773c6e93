// SPDX-License-Identifier: Apache-2.0

package steer

import (
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/internal/netns"
)

// rawDefaults lists default routes of the main table that are not ours, as the kernel tells them.
func (k *linux) rawDefaults(r Route) (raw [][]byte, err error) {
	err = k.dump(unix.RTM_GETROUTE, unix.RTM_NEWROUTE, familyOf(r.v6()), func() { raw = nil }, func(m []byte) error {
		o, bad := k.parseRoute(m)
		if bad == nil && o.place() == r.place() && !o.ours() {
			raw = append(raw, slices.Clone(m))
		}
		return nil
	})
	return raw, err
}

// takeDefault replaces the node's default route. What stood there is on disk before.
func (k *linux) takeDefault(c TakeDefault) error {
	raw, err := k.rawDefaults(c.Route)
	if err != nil {
		return err
	}
	if len(raw) > 0 {
		k.memory.Defaults[familyName(c.Route.v6())] = raw[0]
		if err := k.memory.save(k.o.Folder); err != nil {
			return err
		}
	}
	return k.put(c.Route, c.Over)
}

// giveDefault puts the node's own default route back, in one step, or deletes ours if there was none.
func (k *linux) giveDefault(r Route) error {
	name := familyName(r.v6())
	raw, kept := k.memory.Defaults[name]
	if !kept {
		return gone(k.netlink.RouteDel(k.toRoute(r)))
	}
	if err := k.putRaw(raw); err != nil {
		return fmt.Errorf("the route that was there before cannot be put back: %w", err)
	}
	delete(k.memory.Defaults, name)
	return k.memory.save(k.o.Folder)
}

// Finish implements Edge: it puts default routes back whose place is free.
func (k *linux) Finish() error {
	for name, raw := range k.memory.Defaults {
		r, err := k.parseRoute(raw)
		if err != nil {
			return err
		}
		v := NewView()
		if err := k.readRoutes(familyOf(r.v6()), Query{}, nil, v); err != nil {
			return err
		}
		free := true
		for o := range v.Routes.All() {
			free = free && o.place() != r.place()
		}
		if free {
			if err := k.putRaw(raw); err != nil {
				return fmt.Errorf("put back %s: %w", r, err)
			}
		}
		delete(k.memory.Defaults, name)
	}
	return k.memory.save(k.o.Folder)
}

// putRaw gives the kernel a route as it told it.
func (k *linux) putRaw(raw []byte) error {
	raw = append([]byte(nil), raw...)
	msg := nl.DeserializeRtMsg(raw)
	msg.Flags &= unix.RTNH_F_ONLINK // the others tell of a state
	return netns.Do(k.o.Namespace, func() error {
		req := nl.NewNetlinkRequest(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK)
		req.AddRawData(raw)
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
}
