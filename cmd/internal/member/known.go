// SPDX-License-Identifier: Apache-2.0

package member

import (
	"strings"

	"fairlead.io/fairlead/cluster/leader"
	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/cluster/leader/policies"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
	"fairlead.io/fairlead/k8s/informers"
)

// known are the objects of a kind that a record has from Kubernetes, by the names and versions that they have there. Others it
// cannot be asked for.
func known(record *fsm.View, kind world.Kind) (out []informers.Known) {
	add := func(name string, o fsm.ObjectRef, version uint64) {
		if version != 0 && o.UID != "" {
			out = append(out, informers.Known{ID: world.ID{Namespace: o.Namespace, Name: name}, UID: o.UID, Version: version})
		}
	}
	switch kind {
	case world.KindService:
		for _, s := range fsm.List[*fsm.Service](record, fsm.TableServices) {
			if namespace, name, _ := strings.Cut(string(s.ID), "/"); !s.Deleting {
				add(name, fsm.ObjectRef{Namespace: namespace, UID: s.UID}, s.Version)
			}
		}
	case world.KindNode:
		for _, n := range fsm.List[*fsm.Node](record, fsm.TableNodes) {
			add(string(n.ID), fsm.ObjectRef{UID: n.UID}, n.Version)
		}
	case world.KindPool:
		for _, p := range fsm.List[*fsm.Pool](record, fsm.TablePools) {
			add(string(p.Name), p.Object, p.Version)
		}
	case world.KindPeer:
		for _, p := range fsm.List[*fsm.Peer](record, fsm.TablePeers) {
			if _, legacy := leader.ConfigMapOf(p.Name); !legacy {
				add(string(p.Name), p.Object, p.Version)
			}
		}
	case world.KindConfigMap:
		for _, p := range fsm.List[*fsm.Peer](record, fsm.TablePeers) {
			if of, legacy := leader.ConfigMapOf(p.Name); legacy {
				add(of.Name, p.Object, p.Version)
			}
		}
		for _, n := range fsm.List[*fsm.NodeConfig](record, fsm.TableNodeConfigs) {
			add(convert.ConfigMapIPRule, n.Object, n.Version)
		}
	case world.KindAdvertisement:
		for _, a := range fsm.List[*fsm.Advertisement](record, fsm.TableAdvertisements) {
			add(string(a.Name), a.Object, a.Version)
		}
	case world.KindBalancingPolicy, world.KindLocalRedirect:
		for _, r := range fsm.List[*fsm.Policy](record, fsm.TablePolicies) {
			if of, id := policies.ObjectOf(r.ID); of == kind {
				add(id.Name, fsm.ObjectRef{UID: r.UID}, r.Version)
			}
		}
	case world.KindL2Advert:
		for _, a := range fsm.List[*fsm.L2Advertisement](record, fsm.TableL2Advertisements) {
			add(string(a.Name), a.Object, a.Version)
		}
	case world.KindBackendGroup, world.KindBind, world.KindLoadBalancer, world.KindDriver:
		for _, r := range balancers.Known(record) { // without versions: which life it was says enough
			if r.Kind == kind && r.UID != "" {
				out = append(out, informers.Known{ID: r.ID, UID: r.UID})
			}
		}
	}
	return out
}

// dead is the UID of a Service or Node of that name whose end a record knows of, and which it has not taken in again; empty for none.
func dead(record *fsm.View, kind world.Kind, id world.ID) string {
	of, name, living := fsm.TableServices, id.String(), ""
	switch kind {
	case world.KindService:
		if s, ok := fsm.Get[*fsm.Service](record, fsm.TableServices, name); ok {
			if s.Deleting {
				return s.UID
			}
			living = s.UID
		}
	case world.KindNode:
		of = fsm.TableNodes
		if n, ok := fsm.Get[*fsm.Node](record, fsm.TableNodes, name); ok {
			living = n.UID
		}
	default:
		return ""
	}
	if g, ok := fsm.Get[*fsm.Grave](record, fsm.TableGraves, string(of)+"/"+name); ok && g.UID != living {
		return g.UID
	}
	return ""
}
