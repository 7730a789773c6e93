// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"net/netip"

	"fairlead.io/fairlead/dataplane/tunnel"
	"fairlead.io/fairlead/sim/kernel/message"
)

// Tunnel makes the tunnel to other hosts over this kernel.
func (k *Kernel) Tunnel(o tunnel.Options) (*tunnel.Tunnel, error) {
	return tunnel.Over(o, &tunnelling{k})
}

// tunnelling is the edge of tunnel. Calls to it have no context: those to a kernel end.
type tunnelling struct{ kernel *Kernel }

func (t *tunnelling) call(r message.Tunnel, gone bool) (message.Answer, error) {
	return t.kernel.call(context.Background(), message.Request{Tunnel: &r, Delete: gone})
}

// Read implements tunnel.Edge.
func (t *tunnelling) Read() (*tunnel.Link, error) {
	a, err := t.call(message.Tunnel{Read: true}, false)
	if err != nil || a.Tunnel == nil {
		return nil, explain("read the tunnel", err)
	}
	have := a.Tunnel
	out := &tunnel.Link{
		Settings: tunnel.Settings{VNI: have.VNI, Port: have.Port, Local: have.Local, Plain: have.Plain},
		MAC:      have.MAC, MTU: have.MTU, Up: have.Up, Addresses: have.Addresses,
	}
	for _, n := range have.Neighbours {
		out.Neighbours = append(out.Neighbours, tunnel.Neighbour{Address: n.Address, MAC: n.MAC})
	}
	for _, f := range have.Forwards {
		out.Forwards = append(out.Forwards, tunnel.Forward{MAC: f.MAC, Remote: f.Remote})
	}
	return out, nil
}

// Way implements tunnel.Edge.
func (t *tunnelling) Way(to []netip.Addr) (mtu int, err error) {
	a, err := t.call(message.Tunnel{Ways: to}, false)
	return a.MTU, explain("look at the ways to hosts", err)
}

// Do implements tunnel.Edge.
func (t *tunnelling) Do(c tunnel.Change) error {
	_, err := t.call(message.Tunnel{Do: &message.TunnelChange{
		Verb: string(c.Do), MAC: c.MAC, MTU: c.MTU, Address: c.Address,
		Link:      message.TunnelLink{VNI: c.Link.VNI, Port: c.Link.Port, Local: c.Link.Local, Plain: c.Link.Plain, MAC: c.MAC, MTU: c.MTU},
		Neighbour: message.TunnelNeighbour{Address: c.Neighbour.Address, MAC: c.Neighbour.MAC},
		Forward:   message.TunnelForward{MAC: c.Forward.MAC, Remote: c.Forward.Remote},
	}}, false)
	return explain("tunnel: "+string(c.Do), err)
}

// Guard implements tunnel.Edge.
func (t *tunnelling) Guard(r *tunnel.Rules) (changed bool, err error) {
	guard := &message.TunnelGuard{}
	if r != nil {
		guard = (*message.TunnelGuard)(r)
	}
	a, err := t.call(message.Tunnel{Guard: guard}, r == nil)
	return a.Changed, explain("change table inet "+message.TunnelTable, err)
}

// Watch implements tunnel.Edge.
func (t *tunnelling) Watch(ctx context.Context, changed func()) error {
	return t.kernel.watch(ctx, changed, func(e message.Event) {
		if e.Tunnel {
			changed()
		}
	})
}

// Close implements tunnel.Edge. The kernel is closed with steering.
func (*tunnelling) Close() {}
