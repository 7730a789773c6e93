// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// Hosts outside the cluster are told what their own programs can get to, and no more: where Services and policies are dialled,
// and the addresses behind that. They hear no names of nodes, pods or zones, nothing of routes, leases and peers, and of
// policies only those that are effective outside. Of tunnels they hear where those of nodes end, and of their own; not of each other's.

// anyHosts tells whether there is anybody to tell.
func anyHosts(v *fsm.View) bool { return v.Count(fsm.TableHosts) > 0 }

// deriveOutside brings what hosts are told up to date, given what changed, and tells whether that is news. While there are no hosts
// nothing is kept for them.
func (b *board) deriveOutside(was source, v *fsm.View, changed changedItems) (news bool, err error) {
	if !anyHosts(v) {
		if b.hosts {
			b.outside.clear()
		}
		b.hosts = false
		return false, nil
	}
	b.outside.begin(b.at, v.Revision())
	if !b.hosts {
		changed = allItems(v)
	} else if was.view != nil {
		if err := was.tellOutside(changed, b.outside.was); err != nil {
			return false, err
		}
	}
	if err := (source{v, b.homes}).tellOutside(changed, &b.outside); err != nil {
		return false, err
	}
	if news, err = b.outside.push(b.limit); err == nil {
		b.hosts = true
	}
	return news, err
}

// tellOutside tells what hosts may hear of.
func (from source) tellOutside(of changedItems, to sink) error {
	return errors.Join(
		each("service", of.services, from.tellService, to), each("policy", of.policies, from.tellPolicy, to),
		each("node", of.nodes, from.tellNode, to), each("tunnel of", of.tunnels, from.tellTunnel, to),
	)
}

// tellService: nothing is local to a host, so that it needs no traffic policies, hints or places (balancing §15). Where only some clients may
// come in, it is left to those who see the client's own address.
func (from source) tellService(id fsm.ServiceID, to sink) error {
	key := desired.ServiceKey(string(id))
	s, ok := fsm.Get[*fsm.Service](from.view, fsm.TableServices, string(id))
	if !ok {
		return to.drop(key)
	}
	full := from.serviceOf(s, from.view.Addresses(id))
	told := desired.Service{
		Affinity: full.Affinity, Scheduler: full.Scheduler, NodePortsIPv4: full.NodePortsIPv4, NodePortsIPv6: full.NodePortsIPv6, ClusterIPs: full.ClusterIPs,
	}
	if len(full.SourceRanges) == 0 {
		told.Addresses, told.ByOthers = full.Addresses, full.ByOthers
	}
	if len(told.Addresses)+len(told.ByOthers) == 0 && !s.HasNodePorts() && !s.ServedInside() {
		return to.drop(key)
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
	return to.put(key, value, tellsAll)
}

// tellPolicy tells a policy that is effective outside. None of its pods are a host's own, so that local redirection never is.
func (from source) tellPolicy(id fsm.PolicyID, to sink) error {
	key := desired.PolicyKey(string(id))
	r, ok := fsm.Get[*fsm.Policy](from.view, fsm.TablePolicies, string(id))
	if !ok || len(r.Captures) == 0 || !r.Outside || r.Mode == desired.ToLocalPods {
		return to.drop(key)
	}
	told := policyOf(r)
	told.EveryNode, told.Nodes, told.SpareOwn = false, nil, false
	for i := range told.Backends {
		told.Backends[i].Node, told.Backends[i].UID = "", ""
	}
	value, err := desired.PolicyValue(told)
	if err != nil {
		return err
	}
	return to.put(key, value, tellsAll)
}

// nameless tells one node from another without its name.
func nameless(id fsm.NodeID) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// tellTunnel tells where a node's tunnel ends. What a host's own is like it is told by itself.
func (from source) tellTunnel(id fsm.TunnelID, to sink) error {
	if _, outside := id.Outside(); outside {
		return nil
	}
	key := desired.TunnelHostKey(nameless(fsm.NodeID(id)))
	end := endOf(from.view, id)
	if end == nil {
		return to.drop(key)
	}
	value, err := desired.TunnelHostValue(*end)
	if err != nil {
		return err
	}
	return to.put(key, value, tellsAll)
}

// tellNode tells the addresses of a node, for node ports, under a key that does not have its name.
func (from source) tellNode(id fsm.NodeID, to sink) error {
	key := desired.NodeKey(nameless(id))
	n, ok := fsm.Get[*fsm.Node](from.view, fsm.TableNodes, string(id))
	if !ok || len(n.Addresses)+len(n.Others) == 0 {
		return to.drop(key)
	}
	value, err := desired.NodeValue(slices.Concat(n.Addresses, n.Others))
	if err != nil {
		return err
	}
	return to.put(key, value, tellsAll)
}
