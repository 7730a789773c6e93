// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"fairlead.io/fairlead/sim/traffic"
)

// truth is what users asked for and what there is of it: addresses that they were given, and those that they typed.
type truth struct {
	*traffic.Cluster
	world *scene
}

// typed lists what users typed into spec.externalIPs, which Kubernetes shows nowhere else.
func (t truth) typed() (out []traffic.Target) {
	for _, s := range t.world.plan.services {
		for _, text := range s.Spec.ExternalIPs {
			a, err := netip.ParseAddr(text)
			if err != nil {
				continue // members say so
			}
			for _, p := range s.Spec.Ports {
				out = append(out, traffic.Target{Service: s.Namespace + "/" + s.Name, Address: a, Protocol: protocol(p.Protocol), Port: uint16(p.Port)})
			}
		}
	}
	return out
}

func protocol(p corev1.Protocol) uint8 {
	switch p {
	case corev1.ProtocolUDP:
		return 17
	case corev1.ProtocolSCTP:
		return 132
	}
	return 6
}

// Targets implements traffic.Truth.
func (t truth) Targets() []traffic.Target {
	out := slices.Clone(t.Cluster.Targets())
	for _, x := range t.typed() {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// Wanted implements traffic.Truth. What was typed is wanted as long as a pod is ready.
func (t truth) Wanted(x traffic.Target) bool {
	if t.Cluster.Wanted(x) {
		return true
	}
	i := slices.IndexFunc(t.world.plan.services, func(s *corev1.Service) bool { return s.Namespace+"/"+s.Name == x.Service })
	if i < 0 || !slices.Contains(t.typed(), x) {
		return false
	}
	for _, e := range t.world.stage.Kube.Endpoints(t.world.plan.services[i].Namespace, t.world.plan.services[i].Name) {
		if a, err := netip.ParseAddr(e.Address); err == nil && e.Ready && a.Is4() == x.Address.Is4() {
			return true
		}
	}
	return false
}

// Endpoint implements traffic.Truth: a pod may be silent though nobody was told.
func (t truth) Endpoint(at netip.AddrPort) (pod, node string, ok bool) {
	pod, node, ok = t.Cluster.Endpoint(at)
	if ok && !t.world.life.serves(pod, at.Addr()) {
		t.world.silent, ok = true, false
	}
	return pod, node, ok
}

// probe asks every address, at a steady pace.
type probe struct {
	world   *scene
	ways    map[string]*traffic.Traffic // by the names of the switches that packets go through
	kernels map[netip.Addr]traffic.Kernel
	truth   truth
	clients []traffic.Client
	every   time.Duration
}

// pace is how often each client asks each address; with more than so many addresses, seldom enough that a run stays quick.
const (
	pace    = 20 * time.Millisecond
	atPace  = 25
	clients = 2
	memory  = 5 * time.Second // that clients go on dialling an address that is gone
)

func (w *scene) probe() *probe {
	x := &probe{world: w, truth: truth{traffic.NewCluster(w.World, memory), w}, ways: map[string]*traffic.Traffic{}, kernels: map[netip.Addr]traffic.Kernel{}, every: pace * time.Duration(1+(len(w.plan.services)-1)/atPace)}
	for i := range clients {
		x.clients = append(x.clients, traffic.Client{Name: fmt.Sprintf("client-%c", 'a'+i), Addresses: []netip.Addr{
			netip.AddrFrom4([4]byte{198, 18, 0, byte(i + 1)}), netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0xff, 0xfe, 15: byte(i + 1)}),
		}})
	}
	for _, n := range w.plan.stage.Nodes {
		for _, a := range n.Addresses {
			x.kernels[a.Addr()] = w.stage.Kernel(n.Name)
		}
	}
	return x
}

// through are the ways to an address: by the switches that may learn of it.
func (x *probe) through(a netip.Addr) *traffic.Traffic {
	o := traffic.Options{Kernels: x.kernels, Truth: x.truth, Passes: x.world.stage.Network.Passes}
	key := ""
	for _, s := range x.world.stage.Switches() {
		if x.world.plan.learns(s.Name(), a) {
			o.Switches = append(o.Switches, s)
			key += s.Name() + " "
		}
	}
	if x.ways[key] == nil {
		x.ways[key] = traffic.New(x.world.World, o)
	}
	return x.ways[key]
}

// start begins. Clients ask in turn.
func (x *probe) start() {
	for i, c := range x.clients {
		x.world.After(x.every*time.Duration(i)/time.Duration(len(x.clients)), func() { x.ask(c) })
	}
}

func (x *probe) ask(c traffic.Client) {
	r := x.world.Random("probe " + c.Name)
	for _, t := range x.truth.Targets() {
		if !x.world.plan.reachable(t.Address) {
			continue // no client can come to a switch that knows it
		}
		from := c.Addresses[1]
		if t.Address.Is4() {
			from = c.Addresses[0]
		}
		x.world.silent = false
		x.world.Publish(x.through(t.Address).Send(c.Name, from, t, r.Uint64(), r.Uint64()))
	}
	x.world.After(x.every, func() { x.ask(c) })
}
