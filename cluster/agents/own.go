// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/fsm"
)

// Routing tables of a node configuration that names none (see fsm.NodeConfig).
const (
	defaultInTable  = 101
	defaultOutTable = 102
)

// formatTunnels is the first format of the record that knows whether nodes make tunnels.
const formatTunnels = 2

// everyNode is the key of the configuration of nodes that have none of their own.
const everyNode = "*"

// own is what differs from node to node.
type own struct {
	seq     uint64 // rises when any of the following changes
	group   string
	members []desired.Member
	configs []*fsm.NodeConfig
	boots   map[fsm.NodeID]fsm.BootID // of the nodes that the record knows
	zones   map[fsm.NodeID]string     // of those whose zone is known
	leaving map[fsm.NodeID]bool       // of those that are about to be deleted
	hosts   map[fsm.HostID]hostFacts  // outside the cluster, that the group took in

	mayTunnel bool                               // the record can know of tunnels
	mesh      fsm.TunnelSettings                 // how they are made
	tunneling map[fsm.NodeID]bool                // the nodes that say that they make them
	ends      map[fsm.HostID]*desired.TunnelHost // of the tunnels of hosts outside the cluster
}

// hostFacts is what a host outside the cluster said of itself.
type hostFacts struct {
	boot    fsm.BootID
	at      []netip.Addr
	tunnels bool // it makes them
}

func (f hostFacts) equal(g hostFacts) bool {
	return f.boot == g.boot && f.tunnels == g.tunnels && slices.Equal(f.at, g.at)
}

// factsOfHost is what the record has of a host.
func factsOfHost(h *fsm.Host) hostFacts { return hostFacts{h.Boot, h.Addresses, h.Tunnels} }

// derive reads it anew and tells whether anything changed. Of members and nodes most changes are marks, which
// are nothing to tell.
func (o *own) derive(v *fsm.View) (news bool) {
	group := string(v.Group().ID)
	var members []desired.Member
	for _, m := range fsm.List[*fsm.Member](v, fsm.TableMembers) {
		if m.API != "" {
			members = append(members, desired.Member{Name: m.Name, Address: m.API})
		}
	}
	configs := fsm.List[*fsm.NodeConfig](v, fsm.TableNodeConfigs)
	if group != o.group || !slices.Equal(members, o.members) || !slices.Equal(configs, o.configs) {
		o.group, o.members, o.configs, news = group, members, configs, true
		o.seq++
	}
	nodes := fsm.List[*fsm.Node](v, fsm.TableNodes)
	zones, leaving := factsOf(nodes)
	if !maps.Equal(zones, o.zones) || !maps.Equal(leaving, o.leaving) {
		o.zones, o.leaving, news = zones, leaving, true
		o.seq++
	}
	news = o.deriveTunnels(v, nodes) || news || len(nodes) != len(o.boots)
	for _, n := range nodes {
		if boot, known := o.boots[n.ID]; !known || boot != n.Boot {
			news = true
		}
	}
	if news {
		o.boots = make(map[fsm.NodeID]fsm.BootID, len(nodes))
		for _, n := range nodes {
			o.boots[n.ID] = n.Boot
		}
	}
	hosts := map[fsm.HostID]hostFacts{}
	for _, h := range fsm.List[*fsm.Host](v, fsm.TableHosts) {
		hosts[h.ID] = factsOfHost(h)
	}
	if !maps.EqualFunc(hosts, o.hosts, hostFacts.equal) {
		o.hosts, news = hosts, true
	}
	return news
}

// deriveTunnels is derive for tunnels.
func (o *own) deriveTunnels(v *fsm.View, nodes []*fsm.Node) (news bool) {
	g := v.Group()
	if g.Tunnels != o.mesh {
		o.mesh, news = g.Tunnels, true
		o.seq++
	}
	tunneling := map[fsm.NodeID]bool{}
	for _, n := range nodes {
		if n.Tunnels {
			tunneling[n.ID] = true
		}
	}
	ends := endsOutside(v)
	if !maps.EqualFunc(ends, o.ends, func(a, b *desired.TunnelHost) bool { return reflect.DeepEqual(a, b) }) {
		o.ends, news = ends, true
		o.seq++
	}
	may := g.Format >= formatTunnels
	news = news || may != o.mayTunnel || !maps.Equal(tunneling, o.tunneling)
	o.tunneling, o.mayTunnel = tunneling, may
	return news
}

// endsOutside are the tunnels of hosts outside the cluster.
func endsOutside(v *fsm.View) map[fsm.HostID]*desired.TunnelHost {
	out := map[fsm.HostID]*desired.TunnelHost{}
	for _, t := range fsm.List[*fsm.Tunnel](v, fsm.TableTunnels) {
		if id, outside := t.Host.Outside(); outside {
			if end := endOf(v, t.Host); end != nil {
				out[id] = end
			}
		}
	}
	return out
}

// ofHost gives what is told to a host outside the cluster: whom to ask, and how tunnels are made, with its own.
func (o *own) ofHost(id fsm.HostID) *fairleadv1.NodeState {
	m := desired.NodeMessage(o.group, nil, o.members)
	if mesh := meshOf(o.mesh); mesh != nil {
		mesh.Own = o.ends[id]
		m.Tunnels = desired.TunnelMessage(mesh)
	}
	return m
}

// factsOf is what nodes are told of themselves, of those of which there is something to tell.
func factsOf(nodes []*fsm.Node) (zones map[fsm.NodeID]string, leaving map[fsm.NodeID]bool) {
	zones, leaving = map[fsm.NodeID]string{}, map[fsm.NodeID]bool{}
	for _, n := range nodes {
		if n.Zone != "" {
			zones[n.ID] = n.Zone
		}
		if n.Leaving {
			leaving[n.ID] = true
		}
	}
	return zones, leaving
}

// of gives what is one node's own.
func (o *own) of(node fsm.NodeID) *fairleadv1.NodeState {
	find := func(key string) *fsm.NodeConfig {
		i := slices.IndexFunc(o.configs, func(c *fsm.NodeConfig) bool { return c.Key() == key })
		if i < 0 {
			return nil
		}
		return o.configs[i]
	}
	c := find(string(node))
	if c == nil {
		c = find(everyNode)
	}
	if c == nil {
		return o.message(node, nil)
	}
	config := &desired.Config{
		Switches: c.Switches, InTable: c.InTable, OutTable: c.OutTable, ReplaceDefault: c.ReplaceDefault,
		RulePriorityIn: c.RulePriorityIn, RulePriorityOut: c.RulePriorityOut, FwMark: c.FwMark,
	}
	if config.InTable == 0 {
		config.InTable = defaultInTable
	}
	if config.OutTable == 0 {
		config.OutTable = defaultOutTable
	}
	return o.message(node, config)
}

// meshOf is how tunnels are made, as agents are told; nil for none.
func meshOf(s fsm.TunnelSettings) *desired.TunnelSettings {
	if !s.On() {
		return nil
	}
	out := &desired.TunnelSettings{Port: s.Port, VNI: s.VNI, MTU: s.MTU, Over6: s.Over6}
	for _, r := range []netip.Prefix{s.Range4, s.Range6} {
		if r.IsValid() {
			out.Ranges = append(out.Ranges, r)
		}
	}
	return out
}

func (o *own) message(node fsm.NodeID, config *desired.Config) *fairleadv1.NodeState {
	m := desired.NodeMessage(o.group, config, o.members)
	m.Zone, m.Leaving, m.Tunnels = o.zones[node], o.leaving[node], desired.TunnelMessage(meshOf(o.mesh))
	return m
}
