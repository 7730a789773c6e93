// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// planTunnels gives each host that makes tunnels one, and takes them from those that do not any more. It tells whether settings are on
// their way, on which everything else depends.
func (p *planner) planTunnels() (moving bool) {
	have, want := p.in.Record.Group().Tunnels, p.in.Tunnels
	if p.in.Off {
		want = fsm.TunnelSettings{}
	}
	if have != want {
		if what := p.in.Record.Overlap(want); what != "" {
			p.tell(fsm.TableTunnels, "settings", WaitsForRange, "tunnel addresses would be somebody else's: "+what+"; choose other ranges in controller.yaml of all members")
			return false
		}
		p.say("settings of tunnels", &fsm.SetTunnels{Settings: want})
		return true
	}
	if what := p.in.Record.Overlap(have); have.On() && what != "" {
		p.tell(fsm.TableTunnels, "settings", WaitsForRange, "tunnel addresses are somebody else's, too: "+what+"; choose other ranges in controller.yaml of all members")
	}
	hosts := p.tunnelHosts(have)
	quarantine := !p.in.Record.Group().Quarantine.IsZero()
	for _, t := range fsm.List[*fsm.Tunnel](p.in.Record, fsm.TableTunnels) {
		underlay, stays := hosts[t.Host]
		if _, outside := t.Host.Outside(); outside && !underlay.IsValid() {
			stays = false // its address turned out to be a node's, which is to have it
		}
		holder := p.in.Record.Holder(t)
		switch {
		case stays:
		case quarantine:
			p.tell(fsm.TableTunnels, string(t.Host), WaitsForEvidence, "nothing is removed while the restored record is in quarantine")
		case !t.Leaving:
			p.say("makes no tunnels", &fsm.ReleaseTunnel{Host: t.Host})
		case holder != "":
			p.out.AwaitsNodes = true
			p.tell(fsm.TableTunnels, string(t.Host), WaitsForNode, holder+" has not said yet that its tables do without it")
		default:
			p.say("nobody has it in tables", &fsm.FreeTunnel{Host: t.Host})
		}
	}
	if have.On() {
		p.putTunnels(hosts)
	}
	return false
}

// tunnelHosts are the hosts that shall have a tunnel, by where others reach them; an invalid address for one that has none. Whatever
// is a host of the group's, makes tunnels and has an address may be one. A host outside the cluster that claims a node's address has
// none: nobody vouches for what it says.
func (p *planner) tunnelHosts(s fsm.TunnelSettings) map[fsm.TunnelID]netip.Addr {
	hosts := map[fsm.TunnelID]netip.Addr{}
	if !s.On() {
		return hosts
	}
	family := netip.IPv4Unspecified()
	if s.Over6 {
		family = netip.IPv6Unspecified()
	}
	nodes := map[netip.Addr]bool{}
	for _, n := range fsm.List[*fsm.Node](p.in.Record, fsm.TableNodes) {
		for _, a := range slices.Concat(n.Addresses, n.Others) {
			nodes[a] = true
		}
		if n.Tunnels {
			hosts[fsm.NodeTunnel(n.ID)], _ = n.Address(family)
		}
	}
	for _, h := range fsm.List[*fsm.Host](p.in.Record, fsm.TableHosts) {
		if !h.Tunnels {
			continue
		}
		hosts[fsm.HostTunnel(h.ID)] = netip.Addr{}
		if i := slices.IndexFunc(h.Addresses, func(a netip.Addr) bool { return a.Is4() == family.Is4() && reachable(a) }); i >= 0 && !nodes[h.Addresses[i]] {
			hosts[fsm.HostTunnel(h.ID)] = h.Addresses[i]
		}
	}
	return hosts
}

// reachable tells whether an address can be where others reach a machine.
func reachable(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() && !a.IsLinkLocalUnicast()
}

// putTunnels gives hosts what they lack.
func (p *planner) putTunnels(hosts map[fsm.TunnelID]netip.Addr) {
	taken := map[netip.Addr]fsm.TunnelID{}
	for _, t := range fsm.List[*fsm.Tunnel](p.in.Record, fsm.TableTunnels) {
		if !t.Leaving {
			taken[t.Underlay] = t.Host
		}
	}
	for _, host := range sortedKeys(hosts) {
		underlay := hosts[host]
		t, there := fsm.Get[*fsm.Tunnel](p.in.Record, fsm.TableTunnels, string(host))
		_, ready := p.in.Record.TunnelOf(host)
		p.out.AwaitsNodes = p.out.AwaitsNodes || !ready
		other, used := taken[underlay]
		switch {
		case !underlay.IsValid():
			p.tell(fsm.TableTunnels, string(host), WaitsForUnderlay, "the host has no address of the family by which tunnels go (tunnels.underlay in controller.yaml), or says that it has a node's")
		case p.in.Record.Group().Tunnels.Covers(underlay):
			p.tell(fsm.TableTunnels, string(host), WaitsForUnderlay, fmt.Sprintf("the host's address %s is in the range of tunnel addresses", underlay))
		case used && other != host:
			p.tell(fsm.TableTunnels, string(host), WaitsForUnderlay, fmt.Sprintf("its address %s is that of %s, too", underlay, other))
		case there && !t.Leaving && t.Underlay == underlay:
			if !ready {
				p.tell(fsm.TableTunnels, string(host), WaitsForNode, "the host has not said yet that it has its tunnel")
			}
		case !there && !p.in.Record.Group().Quarantine.IsZero():
			p.tell(fsm.TableTunnels, string(host), WaitsForEvidence, "nothing is given while the restored record is in quarantine")
		default:
			taken[underlay] = host
			p.say("makes tunnels", &fsm.PutTunnel{Host: host, Underlay: underlay})
		}
	}
}
