// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"sort"

	"fairlead.io/fairlead/fsm/world"
)

// shown are the objects of a view by name, and whether they are being deleted. EndpointSlices are looked up by
// Service instead.
type shown map[world.Kind]map[world.ID]bool

// of looks at the objects of one kind, other than Pods, once: those of most kinds are asked for by nobody in most parts.
func (s shown) of(w *world.World, kind world.Kind) map[world.ID]bool {
	if known, looked := s[kind]; looked {
		return known
	}
	out := deletingOf(w, kind)
	if kind != world.KindEndpointSlice {
		for _, r := range w.Unusable {
			if r.Kind == kind {
				out[r.ID] = false
			}
		}
	}
	s[kind] = out
	return out
}

// index looks at the objects of all kinds but Pods.
func index(w *world.World) shown {
	s := shown{}
	for _, kind := range world.Kinds() {
		s.of(w, kind)
	}
	return s
}

func deletingOf(w *world.World, kind world.Kind) map[world.ID]bool {
	switch kind {
	case world.KindService:
		return each(w.Services, func(o *world.Service) world.Meta { return o.Meta })
	case world.KindNode:
		return each(w.Nodes, func(o *world.Node) world.Meta { return o.Meta })
	case world.KindPool:
		return each(w.Pools, func(o *world.Pool) world.Meta { return o.Meta })
	case world.KindPeer:
		return each(w.Peers, func(o *world.Peer) world.Meta { return o.Meta })
	case world.KindAdvertisement:
		return each(w.Advertisements, func(o *world.Advertisement) world.Meta { return o.Meta })
	case world.KindPolicy:
		return each(w.AddressPolicies, func(o *world.AddressPolicy) world.Meta { return o.Meta })
	case world.KindNamespace:
		return each(w.Namespaces, func(o *world.Namespace) world.Meta { return o.Meta })
	case world.KindL2Advert:
		return each(w.L2Advertisements, func(o *world.L2Advertisement) world.Meta { return o.Meta })
	case world.KindCommunity:
		return each(w.Communities, func(o *world.Community) world.Meta { return o.Meta })
	case world.KindConfigMap:
		return each(w.ConfigMaps, func(o *world.ConfigMap) world.Meta { return o.Meta })
	case world.KindDriver:
		return each(w.Drivers, func(o *world.Driver) world.Meta { return o.Meta })
	case world.KindLoadBalancer:
		return each(w.LoadBalancers, func(o *world.OutsideBalancer) world.Meta { return o.Meta })
	case world.KindBackendGroup:
		return each(w.BackendGroups, func(o *world.BackendGroup) world.Meta { return o.Meta })
	case world.KindBalancingPolicy:
		return each(w.BalancingPolicies, func(o *world.BalancingPolicy) world.Meta { return o.Meta })
	case world.KindLocalRedirect:
		return each(w.LocalRedirectPolicies, func(o *world.LocalRedirectPolicy) world.Meta { return o.Meta })
	case world.KindBind:
		return each(w.Binds, func(o *world.Bind) world.Meta { return o.Meta })
	}
	return map[world.ID]bool{}
}

func each[T any](list []*T, meta func(*T) world.Meta) map[world.ID]bool {
	out := make(map[world.ID]bool, len(list))
	for _, o := range list {
		m := meta(o)
		deleting, there := out[m.ID]
		out[m.ID] = m.Deleting && (!there || deleting) // of one name there may be several, and one that stays is enough
	}
	return out
}

// look finds an object of the record in the view: also one that is in a namespace which does not count any more, and is there. Pods are
// many, and few of them are asked for.
func (j *judgement) look(s subject) (deleting, present bool) {
	if s.Kind == world.KindPod {
		if pod := j.pod(s.ID); pod != nil {
			return pod.Deleting, true
		}
	}
	there := j.present.of(j.w, s.Kind)
	deleting, present = there[s.ID]
	if home := j.known.Homes[objectName{s.Kind, s.ID}]; !present && home != "" {
		deleting, present = there[world.ID{Namespace: home, Name: s.ID.Name}]
	}
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
	j.present = shown{}
	j.evidence = map[objectName][]world.Deletion{}
	for _, d := range j.w.Deleted {
		if _, mine := j.views[d.Kind]; !mine {
			continue
		}
		k := objectName{d.Kind, d.ID}
		j.evidence[k] = append(j.evidence[k], d)
	}
}
