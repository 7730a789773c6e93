// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel/message"
)

// tunnel is the interface to other hosts, and who may come in by it. Both outlive processes, and go when the node boots.
//
// It refuses an interface that learns, or that is there before anybody says who may come in: then whoever knows its number could send
// packets into the node.
type tunnel struct {
	link  *message.TunnelLink
	guard *message.TunnelGuard
}

// ethernet is what the way to any host carries, in bytes, and least6 what IPv6 needs.
const ethernet, least6 = 1500, 1280

// tunnelling is one call about it.
func (k *Kernel) tunnelling(r message.Tunnel, gone, own bool) message.Answer {
	switch {
	case r.Read:
		return message.Answer{Tunnel: k.tunnel.link}
	case r.Ways != nil:
		return message.Answer{MTU: ethernet}
	case r.Do != nil:
		name := k.changeTunnel(*r.Do)
		if name == "" {
			k.changedTunnel(own)
		}
		return message.Answer{Error: name}
	}
	want := r.Guard
	if gone {
		want = nil
	}
	if reflect.DeepEqual(want, k.tunnel.guard) {
		return message.Answer{}
	}
	k.tunnel.guard = want
	k.changedTunnel(own)
	return message.Answer{Changed: true}
}

func (k *Kernel) changedTunnel(own bool) {
	k.tell(message.Event{Tunnel: true, Own: own})
	k.publishTunnel()
	k.publishProxies()
}

func (k *Kernel) changeTunnel(c message.TunnelChange) string {
	have := k.tunnel.link
	if c.Verb == "make the interface" {
		return k.makeTunnel(c, have)
	}
	if have == nil {
		return "ENODEV"
	}
	next := *have
	switch c.Verb {
	case "delete the interface":
		k.tunnel.link = nil
		return ""
	case "set its hardware address":
		next.MAC = c.MAC
	case "set its MTU":
		if next.MTU = c.MTU; c.MTU < least6 {
			next.Addresses = slices.DeleteFunc(slices.Clone(have.Addresses), func(p netip.Prefix) bool { return p.Addr().Is6() })
		}
	case "bring it up":
		next.Up = true
	default:
		if name := k.entry(&next, c); name != "" {
			return name
		}
	}
	k.tunnel.link = &next
	return ""
}

func (k *Kernel) makeTunnel(c message.TunnelChange, have *message.TunnelLink) string {
	switch {
	case have != nil:
		return "EEXIST"
	case !c.Link.Plain:
		return k.refuse("an interface of VXLAN", "it learns from whomever where hosts are")
	case !k.own(c.Link.Local):
		return k.refuse("an interface of VXLAN", fmt.Sprintf("it sends from %s, which is not the node's", c.Link.Local))
	case k.tunnel.guard == nil:
		return k.refuse("an interface of VXLAN", "nothing says who may come in by it")
	}
	made := c.Link
	k.tunnel.link = &made
	return ""
}

// entry changes an address of the interface or an entry of its tables.
func (k *Kernel) entry(l *message.TunnelLink, c message.TunnelChange) string {
	switch c.Verb {
	case "give it an address":
		switch {
		case slices.Contains(l.Addresses, c.Address):
			return "EEXIST"
		case c.Address.Addr().Is6() && l.MTU < least6:
			return invalid
		}
		l.Addresses = append(slices.Clone(l.Addresses), c.Address)
	case "take an address from it":
		return drop(&l.Addresses, func(p netip.Prefix) bool { return p == c.Address })
	case "say where a host is":
		_ = drop(&l.Forwards, func(f message.TunnelForward) bool { return f.MAC == c.Forward.MAC }) // if there is one
		l.Forwards = append(l.Forwards, c.Forward)
	case "forget where a host is":
		return drop(&l.Forwards, func(f message.TunnelForward) bool { return f == c.Forward })
	case "say which host has an address":
		_ = drop(&l.Neighbours, func(n message.TunnelNeighbour) bool { return n.Address == c.Neighbour.Address }) // likewise
		l.Neighbours = append(l.Neighbours, c.Neighbour)
	case "forget who has an address":
		return drop(&l.Neighbours, func(n message.TunnelNeighbour) bool { return n == c.Neighbour })
	default:
		return k.refuse("a change of the tunnel", "unknown: "+c.Verb)
	}
	return ""
}

// drop takes what is so from a copy of a list.
func drop[T any](list *[]T, is func(T) bool) string {
	left := slices.DeleteFunc(slices.Clone(*list), is)
	if len(left) == len(*list) {
		return "ENOENT"
	}
	*list = left
	return ""
}

// tunnelAddresses are those that packets by the tunnel are delivered to.
func (k *Kernel) tunnelAddresses() (out []netip.Addr) {
	if l := k.tunnel.link; l != nil && l.Up {
		for _, p := range l.Addresses {
			out = append(out, p.Addr())
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// publishTunnel tells what the tunnel is like, if that has changed.
func (k *Kernel) publishTunnel() {
	e := event.Tunnel{Node: k.o.Node, Boot: k.boot, By: k.by, Addresses: k.tunnelAddresses()}
	if l := k.tunnel.link; l != nil && l.Up {
		for _, n := range l.Neighbours {
			i := slices.IndexFunc(l.Forwards, func(f message.TunnelForward) bool { return f.MAC == n.MAC })
			if i >= 0 {
				e.Ways = append(e.Ways, event.TunnelWay{To: n.Address, By: l.Forwards[i].Remote, MAC: fmt.Sprintf("%x", n.MAC)})
			}
		}
		slices.SortFunc(e.Ways, func(a, b event.TunnelWay) int { return a.To.Compare(b.To) })
		e.MAC = fmt.Sprintf("%x", l.MAC)
	}
	if g := k.tunnel.guard; g != nil {
		e.Peers = g.Peers
	}
	was := k.tunnelled
	if k.tunnelled = e; was.Boot == e.Boot && was.MAC == e.MAC && slices.Equal(was.Addresses, e.Addresses) && slices.Equal(was.Ways, e.Ways) && slices.Equal(was.Peers, e.Peers) {
		return
	}
	k.world.Publish(e)
}

// meddleTunnel lists ways to damage the tunnel.
func (k *Kernel) meddleTunnel() (all []func() string) {
	l := k.tunnel.link
	if l == nil {
		return nil
	}
	change := func(text string, next *message.TunnelLink) {
		all = append(all, func() string {
			k.tunnel.link = next
			k.changedTunnel(false)
			return text
		})
	}
	change("the interface of the tunnel", nil)
	down := *l
	down.Up, down.Neighbours = false, nil // as Linux has it
	down.Addresses = slices.DeleteFunc(slices.Clone(l.Addresses), func(p netip.Prefix) bool { return p.Addr().Is6() })
	change("that the tunnel is up", &down)
	for i, p := range l.Addresses {
		next := *l
		next.Addresses = slices.Delete(slices.Clone(l.Addresses), i, i+1)
		change(fmt.Sprintf("address %s of the tunnel", p), &next)
	}
	for i, n := range l.Neighbours {
		next := *l
		next.Neighbours = slices.Delete(slices.Clone(l.Neighbours), i, i+1)
		change(fmt.Sprintf("who has %s", n.Address), &next)
	}
	for i, f := range l.Forwards {
		next := *l
		next.Forwards = slices.Delete(slices.Clone(l.Forwards), i, i+1)
		change(fmt.Sprintf("where %x is", f.MAC), &next)
	}
	return append(all, func() string {
		k.tunnel.guard = nil
		k.changedTunnel(false)
		return "table " + message.TunnelTable
	})
}
