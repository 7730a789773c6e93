// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s16 holds the proxy addresses that the group manages against the kernels of nodes.
//
// An address is taken packets for by one node at a time, and is given again only once nobody sends packets for it to whoever had it. It is a
// backend of a policy only from when the kernel of its node takes packets for it, and has each of the policy's proxy ports there lead
// somewhere. And who acknowledged a revision sends packets for each host that there was by then to that host, and none for one that was
// given up.
//
// A node whose Node was deleted holds nothing up, and may have what it had until it says something anew. So may everybody after the record
// became another one. What a port leads to is judged by S14.
type s16 struct {
	idle
	*judge
	// deleted are nodes that the record lost, and did not hear of since.
	deleted map[fsm.NodeID]bool
}

func newS16(j *judge) rule { return &s16{judge: j, deleted: map[fsm.NodeID]bool{}} }

func (r *s16) hear(e event.Stamped) {
	x, ok := e.Event.(event.Tunnel)
	if !ok || x.By == "hand" || r.deleted[fsm.NodeID(x.Node)] {
		return
	}
	for _, a := range x.Addresses {
		r.checked()
		for _, n := range r.topology.Nodes {
			if other := r.scene.end(n.Name); n.Name != x.Node && other.has(a) && !r.deleted[fsm.NodeID(n.Name)] && !r.scene.dark[n.Name] {
				r.broken("tunnel address "+a.String(), fmt.Sprintf("%s and %s have it", n.Name, x.Node), other.number, e.Number)
			}
		}
	}
}

func (r *s16) step(s *step) {
	if !r.topology.Sockets.Tunnels {
		return
	}
	before := s.before
	if s.replaced {
		before = nil
		for _, n := range r.topology.Nodes {
			r.deleted[fsm.NodeID(n.Name)] = true
		}
	}
	fsm.Changes(before, s.after, fsm.TableNodes, func(was, is *fsm.Node) {
		switch {
		case is == nil:
			r.deleted[was.ID] = true
		case !s.replaced && (was == nil || was.Acknowledged != is.Acknowledged || was.Boot != is.Boot):
			if !is.Acknowledged.IsZero() {
				delete(r.deleted, is.ID)
			}
			r.carriesOut(s, is)
		}
	})
	if s.replaced {
		return
	}
	fsm.Changes(before, s.after, fsm.TableTunnels, func(was, is *fsm.Tunnel) {
		if is != nil && (was == nil || was.Number != is.Number) {
			r.given(s, is)
		}
	})
	fsm.Changes(before, s.after, fsm.TablePolicies, func(was, is *fsm.Policy) {
		if is == nil {
			return
		}
		for _, b := range is.Backends {
			known := was != nil && slices.Equal(was.Captures, is.Captures) &&
				slices.ContainsFunc(was.Backends, func(o fsm.PolicyBackend) bool { return o.Address == b.Address && o.Node == b.Node })
			if !known && s.after.Group().Tunnels.Covers(b.Address) {
				r.led(s, is, b)
			}
		}
	})
}

// able tells whether it can be asked of a node that its kernel is as it said: nobody is at it, and the group knows of its boot.
func (r *s16) able(v *fsm.View, node fsm.NodeID) bool {
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(node))
	at, meddled := r.scene.meddled[string(node)]
	return ok && !r.scene.dark[string(node)] && string(n.Boot) == r.scene.boots[string(node)] && r.scene.unexcused(string(node)) &&
		(!meddled || r.scene.now-at > r.bounds.S8)
}

// given judges that a host gets addresses: nobody has them still, or sends packets for them elsewhere.
func (r *s16) given(s *step, t *fsm.Tunnel) {
	for _, a := range s.after.Group().Tunnels.Addresses(t.Number) {
		for _, n := range r.topology.Nodes {
			end := r.scene.end(n.Name)
			if n.Name == string(t.Host) || r.deleted[fsm.NodeID(n.Name)] || r.scene.dark[n.Name] {
				continue
			}
			r.checked()
			subject := fmt.Sprintf("%s for %s", a, t.Host)
			if way, known := end.leads(a); known && way.By != t.Underlay {
				r.broken(subject, fmt.Sprintf("it is given, and %s sends packets for it to %s", n.Name, way.By), end.number, s.Number)
			}
			if end.has(a) {
				r.broken(subject, fmt.Sprintf("it is given, and %s takes packets for it", n.Name), end.number, s.Number)
			}
		}
	}
}

// led judges a backend that is new, or new ports of it.
func (r *s16) led(s *step, d *fsm.Policy, b fsm.PolicyBackend) {
	subject := fmt.Sprintf("%s at %s of %s", b.Address, b.Node, d.ID)
	tunnel, given := fsm.Get[*fsm.Tunnel](s.after, fsm.TableTunnels, string(b.Node))
	if !given || tunnel.Leaving || !slices.Contains(s.after.Group().Tunnels.Addresses(tunnel.Number), b.Address) {
		r.broken(subject, "clients are led there, and the address is not the node's", s.Number)
		return
	}
	if !r.able(s.after, b.Node) {
		return
	}
	r.checked()
	end := r.scene.end(string(b.Node))
	if !end.has(b.Address) {
		r.broken(subject, "clients are led there, and its kernel takes no packets for the address", end.number, s.Number)
		return
	}
	for _, c := range d.Captures {
		if c.Address.Is4() != b.Address.Is4() {
			continue
		}
		at := dialled{b.Address, c.Target, protocolName(c.Port)}
		if row, there := end.ports[at]; !there || len(row.To) == 0 {
			r.broken(subject, fmt.Sprintf("clients are led there, and its kernel has %s lead nowhere", at), row.number, s.Number)
		}
	}
}

// carriesOut judges the entries of a node for all hosts that there are by what it acknowledged.
func (r *s16) carriesOut(s *step, n *fsm.Node) {
	if !n.Tunnels || n.Acknowledged.IsZero() || !r.able(s.after, n.ID) {
		return
	}
	own, given := fsm.Get[*fsm.Tunnel](s.after, fsm.TableTunnels, string(n.ID))
	if !given || own.Leaving || n.Acknowledged.Before(own.Since) {
		return
	}
	end := r.scene.end(string(n.ID))
	for _, t := range fsm.List[*fsm.Tunnel](s.after, fsm.TableTunnels) {
		if n.Acknowledged.Before(t.Since) {
			continue
		}
		for _, a := range s.after.Group().Tunnels.Addresses(t.Number) {
			if slices.Contains(n.Failed, fsm.HostPrefix(a)) || t.Host != fsm.NodeTunnel(n.ID) && failed(n, s.after, a) {
				continue
			}
			r.checked()
			way, known := end.leads(a)
			why := ""
			switch {
			case t.Host == fsm.NodeTunnel(n.ID):
				if !end.has(a) {
					why = "its kernel takes no packets for it"
				}
			case t.Leaving && known && r.scene.nodeAt[way.By] == string(t.Host):
				why = "the host is given up, and its kernel still sends there"
			case !t.Leaving && (!known || way.By != t.Underlay):
				why = fmt.Sprintf("its kernel sends to %q, and the host is at %s", text(way.By, known), t.Underlay)
			}
			if why != "" {
				r.broken(fmt.Sprintf("%s on %s", a, n.ID), fmt.Sprintf("it acknowledged %s, and %s", n.Acknowledged, why), end.number, s.Number)
			}
		}
	}
}

// failed tells whether a node said that it lacks its own address of a family: then it may lack those of others.
func failed(n *fsm.Node, v *fsm.View, like netip.Addr) bool {
	return slices.ContainsFunc(n.Failed, func(p netip.Prefix) bool { return p.Addr().Is4() == like.Is4() && v.Group().Tunnels.Covers(p.Addr()) })
}

func text(a netip.Addr, valid bool) string {
	if !valid {
		return "nobody"
	}
	return a.String()
}
