// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"maps"
	"slices"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// KnownOf is what the record holds that a source may be asked about, as far as a part goes. The record does not keep which source an object
// came from: with several, what another one shows must be left out, or its objects look absent here.
func KnownOf(record *fsm.View, source string, part Part) Known {
	objects := servicesOf
	switch part {
	case PartOutside:
		objects = outsideOf
	case PartPolicies:
		objects = policiesOf
	}
	return knownOf(record, source, part, objects(record))
}

func knownOf(record *fsm.View, source string, part Part, objects []KnownObject) Known {
	known := Known{Part: part, Objects: objects, Versions: map[world.Kind]uint64{}}
	if part == PartServices {
		known.Homes = homesOf(record)
	}
	if seen, ok := fsm.Get[*fsm.SourceView](record, fsm.TableViews, source); ok {
		known.Cluster, known.RewindAccepted = seen.Cluster, seen.Rewind
		for _, k := range seen.Versions {
			known.Versions[world.Kind(k.Kind)] = k.Version
		}
	}
	if h := RewindOf(record, source); h != nil && !h.Released {
		known.Rewound = h.Why
	}
	for _, h := range fsm.List[*fsm.Hold](record, fsm.TableHolds) {
		if part.holds(h.ID) {
			known.Holds = append(known.Holds, KnownHold{ID: string(h.ID), Kind: world.Kind(h.Of), Subjects: h.Subjects, Released: h.Released})
		}
	}
	return known
}

// servicesOf are the objects that Services, their configuration and the nodes of the record come from.
func servicesOf(record *fsm.View) (out []KnownObject) {
	services := fsm.List[*fsm.Service](record, fsm.TableServices)
	out = make([]KnownObject, 0, 2*len(services))
	add := func(kind world.Kind, id world.ID, uid string) {
		out = append(out, KnownObject{kind, id, uid})
	}
	for _, s := range services {
		if s.Deleting {
			continue // that was decided
		}
		add(world.KindService, idOf(s.ID), s.UID)
		if len(s.Endpoints) > 0 {
			add(world.KindEndpointSlice, idOf(s.ID), "")
		}
	}
	for _, n := range fsm.List[*fsm.Node](record, fsm.TableNodes) {
		add(world.KindNode, world.ID{Name: string(n.ID)}, n.UID)
	}
	for _, p := range fsm.List[*fsm.Pool](record, fsm.TablePools) {
		add(world.KindPool, world.ID{Name: string(p.Name)}, "")
	}
	for _, a := range fsm.List[*fsm.Advertisement](record, fsm.TableAdvertisements) {
		add(world.KindAdvertisement, world.ID{Name: string(a.Name)}, "")
	}
	for _, a := range fsm.List[*fsm.L2Advertisement](record, fsm.TableL2Advertisements) {
		add(world.KindL2Advert, world.ID{Name: string(a.Name)}, "")
	}
	configMaps := map[world.ID]bool{}
	for _, p := range fsm.List[*fsm.Peer](record, fsm.TablePeers) {
		if of, legacy := ConfigMapOf(p.Name); legacy {
			configMaps[of] = true
		} else {
			add(world.KindPeer, world.ID{Name: string(p.Name)}, "")
		}
	}
	for _, n := range fsm.List[*fsm.NodeConfig](record, fsm.TableNodeConfigs) {
		configMaps[configMapOf(n)] = true
	}
	for _, id := range slices.SortedFunc(maps.Keys(configMaps), world.ID.Compare) {
		add(world.KindConfigMap, id, "")
	}
	return out
}

// homesOf are the namespaces of the objects that the configuration of the record comes from.
func homesOf(record *fsm.View) map[objectName]string {
	homes := map[objectName]string{}
	for kind, held := range heldNames(record) {
		for name, h := range held {
			homes[objectName{kind, world.ID{Name: name}}] = h.Namespace
		}
	}
	return homes
}

// Admit is the view as the plan may see it: not at all if it may not be acted on.
func (v *Verdict) Admit(w *world.World) Admitted {
	if !v.Act {
		return Admitted{Complete: v.Complete}
	}
	return Admitted{World: w, Complete: v.Complete, MayRemove: v.MayRemove}
}
