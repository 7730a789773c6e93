// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// merged is what all sources show together. Where two show an object of one name the source that is listed first
// wins; of objects whose names alone the record knows, the one that it holds does (incumbents).
type merged struct {
	views            []Admitted
	services         []*world.Service
	nodes            []*world.Node
	pools            []*world.Pool
	peers            []*world.Peer
	advertisements   []*world.Advertisement
	configMaps       []*world.ConfigMap
	policies         []*world.AddressPolicy
	namespaces       map[string]*world.Namespace // by name
	l2Advertisements []*world.L2Advertisement
	unusable         map[objectName]world.Problem // what keeps objects from being used that are there
	misadvertised    bool                         // an advertisement is among them
	misadvertisedBGP bool                         // a BGPAdvertisement is
	passed           []passed                     // objects whose name another one has

	// Of mergePolicies alone.
	balancing      []*world.BalancingPolicy
	localRedirects []*world.LocalRedirectPolicy

	// Of mergingOutside, and pods of mergePolicies, too.
	drivers   []*world.Driver
	balancers []*world.OutsideBalancer
	groups    []*world.BackendGroup
	binds     []*world.Bind
	records   []*world.BackendRecord
	pods      []*world.Pod
}

func merge(views []Admitted, record *fsm.View) *merged {
	m := &merged{}
	for _, a := range views {
		if a.World == nil {
			m.views = append(m.views, Admitted{World: &world.World{}})
			continue
		}
		m.views = append(m.views, a)
	}
	m.services = collect(m.views, func(w *world.World) []*world.Service { return w.Services }, func(s *world.Service) world.ID { return s.ID })
	m.nodes = collect(m.views, func(w *world.World) []*world.Node { return w.Nodes }, func(n *world.Node) world.ID { return n.ID })
	held := heldNames(record)
	m.pools = incumbents(m, world.KindPool, fsm.TablePools, held, func(w *world.World) []*world.Pool { return w.Pools }, func(p *world.Pool) *world.Meta { return &p.Meta })
	m.peers = incumbents(m, world.KindPeer, fsm.TablePeers, held, func(w *world.World) []*world.Peer { return w.Peers }, func(p *world.Peer) *world.Meta { return &p.Meta })
	m.l2Advertisements = incumbents(m, world.KindL2Advert, fsm.TableL2Advertisements, held, func(w *world.World) []*world.L2Advertisement { return w.L2Advertisements },
		func(a *world.L2Advertisement) *world.Meta { return &a.Meta })
	m.advertisements = incumbents(m, world.KindAdvertisement, fsm.TableAdvertisements, held, func(w *world.World) []*world.Advertisement { return w.Advertisements },
		func(a *world.Advertisement) *world.Meta { return &a.Meta })
	m.configMaps = collect(m.views, func(w *world.World) []*world.ConfigMap { return w.ConfigMaps },
		func(c *world.ConfigMap) world.ID { return c.ID })
	m.policies = collect(m.views, func(w *world.World) []*world.AddressPolicy { return w.AddressPolicies },
		func(p *world.AddressPolicy) world.ID { return p.ID })
	m.namespaces = map[string]*world.Namespace{}
	for _, n := range collect(m.views, func(w *world.World) []*world.Namespace { return w.Namespaces }, func(n *world.Namespace) world.ID { return n.ID }) {
		m.namespaces[n.Name] = n
	}
	m.unusable = map[objectName]world.Problem{}
	for _, a := range m.views {
		for _, problem := range a.World.Problems {
			if problem.Severity == world.Failed {
				m.unusable[objectName{problem.Object.Kind, problem.Object.ID}] = problem
				if misadvertises(problem.Object) {
					m.misadvertised = true
					m.misadvertisedBGP = m.misadvertisedBGP || problem.Object.Kind == world.KindAdvertisement
				}
			}
		}
	}
	return m
}

// misadvertises tells of an object that cannot be used whether it is an advertisement. One in a namespace that is not read for those does not count:
// others than operators write there.
func misadvertises(o world.Ref) bool {
	return (o.Kind == world.KindAdvertisement || o.Kind == world.KindL2Advert) && o.Namespace == ""
}

// collected is what collect gave last, and of what.
type collected[T any] struct {
	from [][]*T
	out  []*T
}

// collect lists what collect lists. It goes through lists anew only when one of them is another one than before.
func (c *collected[T]) collect(views []Admitted, list func(*world.World) []*T, id func(*T) world.ID) []*T {
	from := make([][]*T, len(views))
	for i, a := range views {
		from[i] = list(a.World)
	}
	if c.out == nil || !slices.EqualFunc(c.from, from, same) {
		c.from, c.out = from, collect(views, list, id)
	}
	return c.out
}

// collect lists the objects of all views in order of their names, each name once.
func collect[T any](views []Admitted, list func(*world.World) []*T, id func(*T) world.ID) []*T {
	n := 0
	for _, a := range views {
		n += len(list(a.World))
	}
	out := make([]*T, 0, n)
	for _, a := range views {
		out = append(out, list(a.World)...)
	}
	byName := func(a, b *T) int { return id(a).Compare(id(b)) }
	rises := true // as that of one source does
	for i := 1; i < len(out) && rises; i++ {
		rises = byName(out[i-1], out[i]) < 0
	}
	if rises {
		return out
	}
	slices.SortStableFunc(out, byName)
	return slices.CompactFunc(out, func(a, b *T) bool { return id(a) == id(b) })
}

// slicesOf gives the slices of a Service from every source.
func (m *merged) slicesOf(service world.ID) []*world.EndpointSlice {
	var out []*world.EndpointSlice
	for _, a := range m.views {
		part := a.World.SlicesOf(service)
		if out == nil {
			out = part
			continue
		}
		out = append(slices.Clip(out), part...)
	}
	return out
}

// mayRemove tells whether every source that yields a kind admits that an object of it is gone.
func (m *merged) mayRemove(kind world.Kind, id world.ID) bool {
	asked := false
	for _, a := range m.views {
		if _, yields := a.World.View(kind); !yields && a.Complete {
			continue // this source has nothing to say about the kind
		}
		if a.MayRemove == nil || !a.MayRemove(kind, id) {
			return false
		}
		asked = true
	}
	return asked
}

// sees tells whether any source shows objects of a kind now.
func (m *merged) sees(kind world.Kind) bool {
	return slices.ContainsFunc(m.views, func(a Admitted) bool { _, yields := a.World.View(kind); return yields })
}

// everListed tells whether every source that yields a kind has listed it once: what is not there may be missing otherwise.
func (m *merged) everListed(kind world.Kind) bool {
	return !slices.ContainsFunc(m.views, func(a Admitted) bool { v, yields := a.World.View(kind); return yields && !v.Listed })
}

// why tells why an object that is absent may not be removed. The endpoints of a Service come from objects of other names.
func (m *merged) why(kind world.Kind, id world.ID) Reason {
	if problem, is := m.unusable[objectName{kind, id}]; is && kind != world.KindEndpointSlice {
		return Reason{WaitsForMend, "it cannot be used as it is written, and stays as it was: " + problem.String()}
	}
	for _, a := range m.views {
		if a.WhyNot == nil {
			continue
		}
		if why := a.WhyNot(kind, id); why != (Reason{}) {
			return why
		}
	}
	return Reason{WaitsForEvidence, "absent from the sources, and not certain to be gone"}
}

// resolve gives what the name of a community stands for, by the objects of all sources; other texts as they are.
func (m *merged) resolve(text string) string {
	for _, a := range m.views {
		if value := a.World.Resolve(text); value != text {
			return value
		}
	}
	return text
}

func (m *merged) complete() bool {
	return len(m.views) > 0 && !slices.ContainsFunc(m.views, func(a Admitted) bool { return !a.Complete })
}
