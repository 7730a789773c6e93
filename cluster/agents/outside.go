// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// Hosts outside the cluster are told what their own programs can get to, and no more: where Services and policies are dialled,
// and the addresses behind that. They hear no names of nodes, pods or zones, nothing of routes, leases and peers, and of
// policies only those that are effective outside. Of tunnels they hear where those of nodes end, and of their own; not of each other's.

// anyHosts tells whether there is anybody to tell.
func anyHosts(v *fsm.View) bool { return v.Count(fsm.TableHosts) > 0 }

// changedItems are what changed of what hosts may hear of.
type changedItems struct {
	services  []fsm.ServiceID
	redirects []fsm.RedirectID
	nodes     []fsm.NodeID
	tunnels   []fsm.TunnelID
}

// deriveOutside brings what hosts are told up to date, given what changed, and tells whether that is news. While there are no hosts
// nothing is kept for them.
func (b *board) deriveOutside(v *fsm.View, changed changedItems) (bool, error) {
	if was := b.hosts; !anyHosts(v) {
		if b.hosts = false; was {
			seq := b.outside.trays[0].seq
			b.outside = newShelf(tellsAll)
			b.outside.trays[0].seq = seq + 1 // whoever has something from before has to be sent everything
		}
		return false, nil
	} else if b.hosts = true; !was {
		changed = allItems(v)
	}
	b.outside.begin(b.at, v.Revision())
	slices.Sort(changed.services)
	for _, id := range changed.services {
		if err := b.tellService(v, id); err != nil {
			return false, fmt.Errorf("encode service %s for hosts: %w", id, err)
		}
	}
	for _, id := range changed.redirects {
		if err := b.tellRedirect(v, id); err != nil {
			return false, fmt.Errorf("encode redirect %s for hosts: %w", id, err)
		}
	}
	for _, id := range changed.nodes {
		if err := b.tellNode(v, id); err != nil {
			return false, fmt.Errorf("encode node %s for hosts: %w", id, err)
		}
	}
	for _, id := range changed.tunnels {
		if err := b.tellTunnel(v, id); err != nil {
			return false, fmt.Errorf("encode tunnel of %s for hosts: %w", id, err)
		}
	}
	return b.outside.push(b.limit)
}

// allItems are all that there are.
func allItems(v *fsm.View) (all changedItems) {
	for _, s := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		all.services = append(all.services, s.ID)
	}
	for _, r := range fsm.List[*fsm.Redirect](v, fsm.TableRedirects) {
		all.redirects = append(all.redirects, r.ID)
	}
	for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		all.nodes = append(all.nodes, n.ID)
	}
	for _, t := range fsm.List[*fsm.Tunnel](v, fsm.TableTunnels) {
		all.tunnels = append(all.tunnels, t.Host)
	}
	return all
}

// tellService: nothing is local to a host, so that it needs no traffic policies, hints or places (balancing §15). Where only some clients may
// come in, it is left to those who see the client's own address.
func (b *board) tellService(v *fsm.View, id fsm.ServiceID) error {
	key := desired.ServiceKey(string(id))
	s, ok := fsm.Get[*fsm.Service](v, fsm.TableServices, string(id))
	if !ok {
		return b.outside.drop(key)
	}
	full := b.serviceOf(v, s, v.Addresses(id))
	told := desired.Service{
		Affinity: full.Affinity, Scheduler: full.Scheduler, NodePortsIPv4: full.NodePortsIPv4, NodePortsIPv6: full.NodePortsIPv6, ClusterIPs: full.ClusterIPs,
	}
	if len(full.SourceRanges) == 0 {
		told.Addresses, told.ByOthers = full.Addresses, full.ByOthers
	}
	if len(told.Addresses)+len(told.ByOthers) == 0 && !s.HasNodePorts() && !s.ServedInside() {
		return b.outside.drop(key)
	}
	for _, f := range full.Frontends {
		if len(told.Addresses) == 0 {
			f.NotOn = nil
		}
		told.Frontends = append(told.Frontends, f)
	}
	for _, e := range full.Endpoints {
		e.Node, e.Hints = "", nil
		told.Endpoints = append(told.Endpoints, e)
	}
	value, err := desired.ServiceValue(told)
	if err != nil {
		return err
	}
	return b.outside.put(key, value, tellsAll)
}

// tellRedirect tells a policy that is effective outside. None of its pods are a host's own, so that local redirection never is.
func (b *board) tellRedirect(v *fsm.View, id fsm.RedirectID) error {
	key := desired.RedirectKey(string(id))
	r, ok := fsm.Get[*fsm.Redirect](v, fsm.TableRedirects, string(id))
	if !ok || len(r.Captures) == 0 || !r.Outside || r.Mode == desired.ToLocalPods {
		return b.outside.drop(key)
	}
	told := redirectOf(r)
	told.EveryNode, told.Nodes, told.SpareOwn = false, nil, false
	for i := range told.Backends {
		told.Backends[i].Node, told.Backends[i].UID = "", ""
	}
	value, err := desired.RedirectValue(told)
	if err != nil {
		return err
	}
	return b.outside.put(key, value, tellsAll)
}

// nameless tells one node from another without its name.
func nameless(id fsm.NodeID) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// tellTunnel tells where a node's tunnel ends. What a host's own is like it is told by itself.
func (b *board) tellTunnel(v *fsm.View, id fsm.TunnelID) error {
	if _, outside := id.Outside(); outside {
		return nil
	}
	key := desired.TunnelHostKey(nameless(fsm.NodeID(id)))
	end := endOf(v, id)
	if end == nil {
		return b.outside.drop(key)
	}
	value, err := desired.TunnelHostValue(*end)
	if err != nil {
		return err
	}
	return b.outside.put(key, value, tellsAll)
}

// tellNode tells the addresses of a node, for node ports, under a key that does not have its name.
func (b *board) tellNode(v *fsm.View, id fsm.NodeID) error {
	key := desired.NodeKey(nameless(id))
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, string(id))
	if !ok || len(n.Addresses)+len(n.Others) == 0 {
		return b.outside.drop(key)
	}
	value, err := desired.NodeValue(slices.Concat(n.Addresses, n.Others))
	if err != nil {
		return err
	}
	return b.outside.put(key, value, tellsAll)
}
