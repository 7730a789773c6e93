// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"encoding/hex"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel/message"
	"fairlead.io/fairlead/sim/network"
)

// Port is where the kernel answers processes of its own machine.
const Port = "kernel"

// Options are what a node is like.
type Options struct {
	Node string // and its machine
	// Addresses are the node's own, with the networks that they are in; Device is the interface that has them. Default
	// eth0.
	Addresses []netip.Prefix
	Device    string
	// Gateways are those of the node's default routes, at most one of a family.
	Gateways []netip.Addr
	// Switches are where answers of service addresses must leave to count as steered; none: by any way.
	Switches []netip.Addr
	// NAT says that translation is ours: without it kube-proxy is taken to translate everything.
	NAT bool
	// Room is that of the tables of programs at sockets; the zero one is the usual.
	Room message.Room
}

// Kernel is that of one node.
type Kernel struct {
	o      Options
	world  *engine.World
	random *rand.Rand

	up     bool
	boot   string
	rules  []message.Rule // as packets meet them: of equal priorities, those first that were added first
	routes map[message.Route]bool
	tables map[string]*message.Table
	conns  []*client
	known  memory
	// sockets are the tables of programs at sockets.
	sockets sockets
	cgroups cgroups
	tunnel  tunnel
	// tunnelled and proxied are what was published last of the tunnel, and of the ports at its addresses.
	tunnelled event.Tunnel
	proxied   map[proxyPort][]string

	steered []netip.Addr // as published last
	by      string       // who else than the agent is at it
	queue   []call
	busy    bool
	faults  []*Fault
	slow    time.Duration
}

// New makes a kernel and boots it.
func New(w *engine.World, n *network.Network, o Options) *Kernel {
	if o.Device == "" {
		o.Device = "eth0"
	}
	if o.Room == (message.Room{}) {
		o.Room = message.RoomFor(0)
	}
	k := &Kernel{o: o, world: w, random: w.Random("kernel " + o.Node)}
	n.Listen(o.Node, Port, k.accept)
	k.Up()
	return k
}

// Node is the name of the node.
func (k *Kernel) Node() string { return k.o.Node }

// Boot is what the kernel drew at its last boot.
func (k *Kernel) Boot() string { return k.boot }

// Up boots a kernel that is down: with a boot id of its own, and nothing but the node's own routes.
func (k *Kernel) Up() {
	if k.up {
		return
	}
	k.up = true
	k.boot = k.drawBoot()
	k.rules, k.routes, k.tables = nil, map[message.Route]bool{}, map[string]*message.Table{}
	k.known = memory{}
	k.sockets, k.cgroups = newSockets(), cgroups{pods: map[string]podCgroup{}}
	k.tunnel, k.tunnelled, k.proxied = tunnel{}, event.Tunnel{}, nil
	for _, v6 := range []bool{false, true} {
		k.rules = append(k.rules, message.Rule{V6: v6, Priority: 32766, Table: mainTable, Protocol: protocolKernel})
	}
	for _, a := range k.o.Addresses {
		own := message.Route{Table: mainTable, To: a.Masked(), Device: k.o.Device, Protocol: protocolKernel}
		if a.Addr().Is4() {
			own.Source = a.Addr()
		} else {
			own.Metric = 256
		}
		k.routes[own] = true
	}
	for _, g := range k.o.Gateways {
		k.routes[message.Route{
			Table: mainTable, To: netip.PrefixFrom(zero(g), 0), Device: k.o.Device, Gateway: g, Metric: metric(g), Protocol: protocolBoot,
		}] = true
	}
	k.publish()
}

// drawBoot is the id of a boot.
func (k *Kernel) drawBoot() string {
	var id [8]byte
	for i := range id {
		id[i] = byte(k.random.UintN(256))
	}
	return hex.EncodeToString(id[:])
}

// Numbers of Linux.
const (
	mainTable      = 254
	protocolKernel = 2
	protocolBoot   = 3
)

// zero is the unspecified address of the family of an address.
func zero(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// metric is what the kernel gives routes that name none.
func metric(a netip.Addr) uint32 {
	if a.Is4() {
		return 0
	}
	return 1024
}

// Down is the loss of everything. Connections end with the processes that have them.
func (k *Kernel) Down() {
	if !k.up {
		return
	}
	k.up = false
	k.rules, k.routes, k.tables, k.sockets = nil, nil, nil, sockets{}
	k.tunnel, k.tunnelled, k.proxied = tunnel{}, event.Tunnel{}, nil
	k.queue = nil
	k.publish()
}

// IsUp tells whether packets to the node are taken at all.
func (k *Kernel) IsUp() bool { return k.up }

// publish tells which addresses are steered, if that has changed.
func (k *Kernel) publish() {
	now := []netip.Addr{}
	if k.up {
		for _, a := range k.candidates() {
			if k.whole(a) == "" {
				now = append(now, a)
			}
		}
	}
	if slices.Equal(now, k.steered) {
		return
	}
	k.steered = now
	k.world.Publish(event.Steered{Node: k.o.Node, Boot: k.boot, Addresses: now, By: k.by})
}

// candidates are the addresses that may be steered: those that anything of ours is about.
func (k *Kernel) candidates() []netip.Addr {
	all := map[netip.Addr]bool{}
	for _, r := range k.rules {
		if r.To.IsValid() && r.To.IsSingleIP() {
			all[r.To.Addr()] = true
		}
	}
	for r := range k.routes {
		if r.Local && r.To.IsSingleIP() {
			all[r.To.Addr()] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), netip.Addr.Compare)
}

// Steered lists the addresses that are steered as a whole, in order.
func (k *Kernel) Steered() []netip.Addr { return slices.Clone(k.steered) }
