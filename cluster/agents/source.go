// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"fairlead.io/fairlead/fsm"
)

// source is what items are derived from. It does not change, so that it needs no lock.
type source struct {
	view  *fsm.View
	homes map[netip.Addr]fsm.NodeID // the nodes by their addresses, as of the view
}

// sink takes items as they are derived: a shelf those that changed, a pile all that there are.
type sink interface {
	put(key string, value []byte, needs tells) error
	drop(key string) error // there is none, or no more
}

// changedItems are what items are derived of, in order.
type changedItems struct {
	addresses []netip.Addr
	services  []fsm.ServiceID
	policies  []fsm.PolicyID
	nodes     []fsm.NodeID
	tunnels   []fsm.TunnelID
}

// allItems are all that there are.
func allItems(v *fsm.View) (all changedItems) {
	for _, a := range fsm.List[*fsm.Allocation](v, fsm.TableAllocations) {
		all.addresses = append(all.addresses, a.Address)
	}
	for _, r := range fsm.List[*fsm.Route](v, fsm.TableRoutes) {
		all.addresses = append(all.addresses, r.Prefix.Addr())
	}
	slices.SortFunc(all.addresses, netip.Addr.Compare)
	all.addresses = slices.Compact(all.addresses)
	for _, s := range fsm.List[*fsm.Service](v, fsm.TableServices) {
		all.services = append(all.services, s.ID)
	}
	for _, r := range fsm.List[*fsm.Policy](v, fsm.TablePolicies) {
		all.policies = append(all.policies, r.ID)
	}
	for _, n := range fsm.List[*fsm.Node](v, fsm.TableNodes) {
		all.nodes = append(all.nodes, n.ID)
	}
	for _, t := range fsm.List[*fsm.Tunnel](v, fsm.TableTunnels) {
		all.tunnels = append(all.tunnels, t.Host)
	}
	return all
}

// tellInside tells what nodes hear of.
func (from source) tellInside(of changedItems, to sink) error {
	return errors.Join(
		each("address", of.addresses, from.deriveAddress, to), each("service", of.services, from.deriveService, to),
		each("policy", of.policies, from.derivePolicy, to), each("tunnel of", of.tunnels, from.deriveTunnel, to),
		each("node", of.nodes, from.deriveNode, to),
	)
}

// each derives the items of one kind.
func each[K any](kind string, keys []K, derive func(K, sink) error, to sink) error {
	for _, key := range keys {
		if err := derive(key, to); err != nil {
			return fmt.Errorf("encode %s %v for agents: %w", kind, key, err)
		}
	}
	return nil
}

// everything tells nodes, or hosts outside the cluster, all that there is.
func (from source) everything(out bool, to sink) error {
	switch {
	case !out:
		return from.tellInside(allItems(from.view), to)
	case anyHosts(from.view):
		return from.tellOutside(allItems(from.view), to)
	}
	return nil
}
