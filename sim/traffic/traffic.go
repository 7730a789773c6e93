// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/kernel"
)

// Switch forwards packets, such as a fabric.Switch.
type Switch interface {
	Name() string
	// On tells whether the switch works at all: those beside it send no packets to one that does not.
	On() bool
	Forward(to netip.Addr, hash uint64) (nextHop netip.Addr, ok bool)
}

// Kernel takes packets on a node, such as a kernel.Kernel.
type Kernel interface {
	Node() string
	Deliver(kernel.Packet) (endpoint netip.AddrPort, ok bool, why string)
	// IsUp tells whether the node has power.
	IsUp() bool
}

// Target is a service port that clients may dial.
type Target struct {
	Service  string // namespace/name
	Address  netip.Addr
	Protocol uint8
	Port     uint16
}

// Truth is what users asked for, and what there is of it.
type Truth interface {
	// Targets lists what clients know of: what users were given, and for a while what they had been given, in order.
	Targets() []Target
	// Wanted tells whether a request should be served now.
	Wanted(Target) bool
	// Endpoint tells who answers at an address: a pod by "namespace/name", whatever it serves, and its node. It is false
	// if nobody does.
	Endpoint(netip.AddrPort) (pod, node string, ok bool)
	// Choose is kube-proxy on a node: it is false if that has no endpoint for a request.
	Choose(t Target, node string, hash uint64) (endpoint netip.AddrPort, ok bool)
}

// Client is where requests come from.
type Client struct {
	Name      string
	Addresses []netip.Addr // at most one of a family; it dials targets of these families only
}

// Options are what traffic is made of.
type Options struct {
	Clients  []Client
	Every    time.Duration // mean time between two requests of one client. Default 20 ms
	Switches []Switch
	Kernels  map[netip.Addr]Kernel // by the node's address
	Truth    Truth
	// Passes tells whether packets get from one machine to another now; nil: always.
	Passes func(from, to string) bool
}

// Traffic sends requests from Start to Stop.
type Traffic struct {
	o      Options
	world  *engine.World
	byNode map[string]Kernel
	timers []*engine.Timer
}

// New makes traffic that has not started.
func New(w *engine.World, o Options) *Traffic {
	if o.Every == 0 {
		o.Every = 20 * time.Millisecond
	}
	if o.Passes == nil {
		o.Passes = func(string, string) bool { return true }
	}
	t := &Traffic{o: o, world: w, byNode: map[string]Kernel{}, timers: make([]*engine.Timer, len(o.Clients))}
	for _, k := range o.Kernels {
		t.byNode[k.Node()] = k
	}
	return t
}

// Start has every client begin.
func (t *Traffic) Start() {
	for i, c := range t.o.Clients {
		t.next(i, c, t.world.Random("traffic "+c.Name))
	}
}

// Stop ends the traffic.
func (t *Traffic) Stop() {
	for _, timer := range t.timers {
		timer.Stop()
	}
}

// next plans a client's next request.
func (t *Traffic) next(i int, c Client, r *rand.Rand) {
	t.timers[i] = t.world.After(time.Duration(r.ExpFloat64()*float64(t.o.Every)), func() {
		t.request(c, r)
		t.next(i, c, r)
	})
}

// request draws a request and sends it. It draws the same whatever becomes of it.
func (t *Traffic) request(c Client, r *rand.Rand) {
	pick, way, hash := r.Uint64(), r.Uint64(), r.Uint64()
	var targets []Target
	var sources []netip.Addr
	for _, target := range t.o.Truth.Targets() {
		for _, a := range c.Addresses {
			if a.Is4() == target.Address.Is4() {
				targets, sources = append(targets, target), append(sources, a)
			}
		}
	}
	if len(targets) == 0 {
		return
	}
	i := pick % uint64(len(targets))
	t.world.Publish(t.Send(c.Name, sources[i], targets[i], way, hash))
}

// Send is one request: way chooses the switch, hash is that of the flow. It publishes nothing.
func (t *Traffic) Send(client string, from netip.Addr, to Target, way, hash uint64) event.Flow {
	f := event.Flow{Client: client, Address: to.Address, Port: to.Port, Wanted: t.o.Truth.Wanted(to)}
	f.Why = t.follow(&f, kernel.Packet{Source: from, Destination: to.Address, Protocol: to.Protocol, Port: to.Port, Hash: hash}, to, way)
	f.Served = f.Why == ""
	return f
}

// follow takes a packet along, and tells why it did not arrive.
func (t *Traffic) follow(f *event.Flow, p kernel.Packet, to Target, way uint64) string {
	s := t.entry(way)
	if s == nil {
		return "no switch works"
	}
	f.Switch = s.Name()
	hop, ok := s.Forward(p.Destination, p.Hash)
	if !ok {
		return "the switch knows no way"
	}
	f.NextHop = hop
	k := t.o.Kernels[hop]
	if k == nil {
		return fmt.Sprintf("nobody has the next hop %s", hop)
	}
	f.Node = k.Node()
	if !k.IsUp() {
		return "the node has no power"
	}
	if !t.o.Passes(f.Switch, f.Node) || !t.o.Passes(f.Node, f.Switch) {
		return "the switch does not reach the node"
	}
	endpoint, ok, why := k.Deliver(p)
	if !ok {
		return why
	}
	if !endpoint.IsValid() {
		if endpoint, ok = t.o.Truth.Choose(to, f.Node, p.Hash); !ok {
			return "kube-proxy knows no endpoint"
		}
	}
	return t.arrive(f, endpoint)
}

// arrive is the last part of the way, from the node to the endpoint.
func (t *Traffic) arrive(f *event.Flow, endpoint netip.AddrPort) string {
	pod, node, ok := t.o.Truth.Endpoint(endpoint)
	if !ok {
		return fmt.Sprintf("nobody answers at %s", endpoint)
	}
	f.Behind = node
	if k := t.byNode[node]; k != nil && !k.IsUp() {
		return fmt.Sprintf("the node of %s has no power", pod)
	}
	if node != f.Node && (!t.o.Passes(f.Node, node) || !t.o.Passes(node, f.Node)) {
		return fmt.Sprintf("the node does not reach that of %s", pod)
	}
	f.Pod = pod
	return ""
}

// entry is the switch that a request comes to: one of those that work.
func (t *Traffic) entry(way uint64) Switch {
	var on []Switch
	for _, s := range t.o.Switches {
		if s.On() {
			on = append(on, s)
		}
	}
	if len(on) == 0 {
		return nil
	}
	return on[way%uint64(len(on))]
}
