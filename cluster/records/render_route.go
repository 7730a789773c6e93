// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"fmt"
	"slices"

	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/fsm"
)

func (r *renderer) route(route *fsm.Route) any {
	return records.Route{
		Name: route.Key(), Prefix: route.Prefix.String(),
		Services: each(r.view.Owners(route.Prefix.Addr().String()), func(a *fsm.Allocation) string { return string(a.Service) }),
		NextHops: each(route.NextHops, func(h fsm.NextHop) records.NextHop {
			n, known := fsm.Get[*fsm.Node](r.view, fsm.TableNodes, string(h.Node()))
			return records.NextHop{
				Node: string(h.Node()), Address: h.Address().String(), State: string(r.view.HopState(route, h)),
				Failed: known && slices.Contains(n.Failed, route.Prefix), Since: revision(h.Since),
			}
		}),
	}
}

func (r *renderer) peer(p *fsm.Peer) any {
	d := records.Peer{
		Name: string(p.Name), Address: addressOf(p), Interface: p.Interface, Port: orDefault(p.Port, 179), ASN: p.ASN, LocalASN: p.LocalASN,
		Passive: p.Passive, MultihopTTL: p.MultihopTTL, TTLSecurity: p.Options.TTLSecurity, SendMax: orDefault(p.SendMax, 64), Families: []string{},
		HoldTimeMs: milliseconds(p.HoldTime), KeepaliveTimeMs: milliseconds(p.KeepaliveTime), ConnectTimeMs: milliseconds(p.ConnectTime),
		GracefulRestart: !p.NoRestart, RestartTimeMs: milliseconds(p.RestartTime), StaleTimeMs: milliseconds(p.StaleTime),
		KeepOnNotice: p.Options.KeepOnNotification, PasswordFrom: p.PasswordFrom, Sessions: []records.Session{}, Version: p.Version,
	}
	if p.IPv4 {
		d.Families = append(d.Families, "ipv4")
	}
	if p.IPv6 {
		d.Families = append(d.Families, "ipv6")
	}
	d.Mode = "group"
	if p.Nodes.Speak {
		d.Mode = "node"
		d.Sessions = append(d.Sessions, r.sessionsOfNodes(p)...)
	}
	if p.Nodes.Only {
		d.Nodes = words(p.Nodes.Names)
	}
	if r.sessions != nil && !p.Nodes.Speak {
		if state, ok := r.sessions()[p.Name]; ok {
			d.Sessions = append(d.Sessions, records.Session{Member: r.self, State: state})
		}
	}
	return d
}

// addressOf is a peer's address, empty for one that is behind an interface.
func addressOf(p *fsm.Peer) string {
	if !p.Address.IsValid() {
		return ""
	}
	return p.Address.String()
}

// sessionsOfNodes lists the sessions of the nodes that are to peer, by name. One that never said how it stands has no state.
func (r *renderer) sessionsOfNodes(p *fsm.Peer) []records.Session {
	var states map[fsm.NodeID]string
	if r.nodeSessions != nil {
		states = r.nodeSessions(p.Name)
	}
	var out []records.Session
	for _, n := range fsm.List[*fsm.Node](r.view, fsm.TableNodes) {
		if p.Nodes.Admits(n.ID) {
			out = append(out, records.Session{Node: string(n.ID), State: cmp.Or(states[n.ID], noSpeaker(n))})
		}
	}
	return out
}

// noSpeaker says what is known of a node that has not told of a session.
func noSpeaker(n *fsm.Node) string {
	if !n.Speaking.Speaks {
		return "none: its agent does not speak BGP; set bgp in its agent.yaml"
	}
	return "unknown: its agent has not told this member yet"
}

func (r *renderer) advertisement(a *fsm.Advertisement) any {
	d := records.Advertisement{
		Name: string(a.Name), Pools: words(a.Pools), Peers: words(a.Peers), LocalPref: a.LocalPref, MED: a.Terms.MED, OnlyServices: a.Terms.OnlyServices, Weighted: a.Terms.Weighted, Version: a.Version,
		AggregateV4: a.Terms.AggregateV4, AggregateV6: a.Terms.AggregateV6, Fallback: a.Terms.Fallback,
		Communities: each(a.Communities, func(c uint32) string { return fmt.Sprintf("%d:%d", c>>16, c&0xffff) }),
	}
	for _, c := range a.Terms.LargeCommunities {
		d.Communities = append(d.Communities, fmt.Sprintf("large:%d:%d:%d", c.Global, c.Local1, c.Local2))
	}
	if a.Terms.OnlyNodes {
		d.Nodes = words(a.Terms.Nodes)
	}
	return d
}

func (r *renderer) l2Advertisement(a *fsm.L2Advertisement) any {
	d := records.L2Advertisement{Name: string(a.Name), Pools: words(a.Pools), Kept: words(a.Kept), Interfaces: words(a.Interfaces), Version: a.Version}
	if !a.EveryNode {
		d.Nodes = words(a.Nodes)
	}
	return d
}

func (r *renderer) node(n *fsm.Node) any {
	return records.Node{
		Name: string(n.ID), UID: n.UID, Addresses: texts(n.Addresses), Others: texts(n.Others), Eligible: n.Eligible, Why: n.Why,
		Liveness: n.Liveness.String(), Boot: string(n.Boot), Acknowledged: maybe(n.Acknowledged),
		Failed: texts(n.Failed), Version: n.Version,
	}
}

func (r *renderer) nodeConfig(c *fsm.NodeConfig) any {
	return records.NodeConfig{
		Name: c.Key(), Switches: texts(c.Switches), ReplaceDefault: c.ReplaceDefault,
		InTable: orDefault(c.InTable, 101), OutTable: orDefault(c.OutTable, 102),
	}
}
