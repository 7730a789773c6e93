// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"sort"

	"fairlead.io/fairlead/fsm/world"
)

// shown are the objects of a view by name, and whether they are being deleted. EndpointSlices are looked up by
// Service instead.
type shown map[world.Kind]map[world.ID]bool

func (s shown) see(kind world.Kind, m world.Meta) {
	if s[kind] == nil {
		s[kind] = map[world.ID]bool{}
	}
	s[kind][m.ID] = m.Deleting
}

// index looks at everything but Pods.
func index(w *world.World) shown {
	s := shown{}
	each(w.Services, world.KindService, s, func(o *world.Service) world.Meta { return o.Meta })
	each(w.Nodes, world.KindNode, s, func(o *world.Node) world.Meta { return o.Meta })
	each(w.Pools, world.KindPool, s, func(o *world.Pool) world.Meta { return o.Meta })
	each(w.Peers, world.KindPeer, s, func(o *world.Peer) world.Meta { return o.Meta })
	each(w.Advertisements, world.KindAdvertisement, s, func(o *world.Advertisement) world.Meta { return o.Meta })
	each(w.AddressPolicies, world.KindPolicy, s, func(o *world.AddressPolicy) world.Meta { return o.Meta })
	each(w.Namespaces, world.KindNamespace, s, func(o *world.Namespace) world.Meta { return o.Meta })
	each(w.L2Advertisements, world.KindL2Advert, s, func(o *world.L2Advertisement) world.Meta { return o.Meta })
	each(w.Communities, world.KindCommunity, s, func(o *world.Community) world.Meta { return o.Meta })
	each(w.ConfigMaps, world.KindConfigMap, s, func(o *world.ConfigMap) world.Meta { return o.Meta })
	each(w.Drivers, world.KindDriver, s, func(o *world.Driver) world.Meta { return o.Meta })
	each(w.LoadBalancers, world.KindLoadBalancer, s, func(o *world.OutsideBalancer) world.Meta { return o.Meta })
	each(w.BackendGroups, world.KindBackendGroup, s, func(o *world.BackendGroup) world.Meta { return o.Meta })
	each(w.BalancingPolicies, world.KindBalancingPolicy, s, func(o *world.BalancingPolicy) world.Meta { return o.Meta })
	each(w.LocalRedirectPolicies, world.KindLocalRedirect, s, func(o *world.LocalRedirectPolicy) world.Meta { return o.Meta })
	each(w.Binds, world.KindBind, s, func(o *world.Bind) world.Meta { return o.Meta })
	for _, r := range w.Unusable {
		if r.Kind != world.KindEndpointSlice {
			s.see(r.Kind, world.Meta{ID: r.ID})
		}
	}
	return s
}

func each[T any](list []*T, kind world.Kind, s shown, meta func(*T) world.Meta) {
	s[kind] = make(map[world.ID]bool, len(list))
	for i := range list {
		s.see(kind, meta(list[i]))
	}
}

// look finds an object of the record in the view. Pods are many, and few of them are asked for.
func (j *judgement) look(s subject) (deleting, present bool) {
	if s.Kind == world.KindPod {
		if pod := j.pod(s.ID); pod != nil {
			return pod.Deleting, true
		}
	}
	deleting, present = j.present[s.Kind][s.ID]
	return deleting, present
}

// nearby is how many pods further on one is looked for before all are searched.
const nearby = 8

// pod finds a pod of the view. They are asked for in order, mostly, and then it is the next one or near it.
func (j *judgement) pod(id world.ID) *world.Pod {
	pods := j.w.Pods
	for at := j.next; at < min(j.next+nearby, len(pods)); at++ {
		c := pods[at].Compare(id)
		if c == 0 {
			j.next = at + 1
			return pods[at]
		}
		if c > 0 {
			break
		}
	}
	at := sort.Search(len(pods), func(i int) bool { return pods[i].Compare(id) >= 0 })
	j.next = at
	if at < len(pods) && pods[at].ID == id {
		return pods[at]
	}
	return nil
}

// index makes the look-ups of the view.
func (j *judgement) index() {
	j.views = map[world.Kind]world.KindView{}
	for _, k := range j.w.Kinds {
		j.views[k.Kind] = k
	}
	for _, r := range j.w.Unusable {
		if v, ok := j.views[r.Kind]; ok && r.Kind == world.KindEndpointSlice {
			// Nobody knows whose endpoints it holds, so no Service is known to lack slices.
			v.Complete = false
			j.views[r.Kind] = v
		}
	}
	j.absent = map[subject]string{}
	j.present = index(j.w)
	j.evidence = map[objectName][]world.Deletion{}
	for _, d := range j.w.Deleted {
		if _, mine := j.views[d.Kind]; !mine {
			continue
		}
		k := objectName{d.Kind, d.ID}
		j.evidence[k] = append(j.evidence[k], d)
	}
}
