// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// advertising is what users say of who is to be sent which addresses by BGP, as the API server has it.
type advertising struct {
	advertisements map[string]advertisementJSON // BGPAdvertisements, by "namespace/name"
	foreign        map[string]bool              // pools of MetalLB's, by name
	segments       int                          // L2Advertisements
	ever           bool                         // there was an advertisement once
	// changed is when any of that became another last, after the world had begun; never if it did not.
	changed time.Duration
}

func newAdvertising() advertising {
	return advertising{advertisements: map[string]advertisementJSON{}, foreign: map[string]bool{}, changed: never}
}

func (a *advertising) hear(at time.Duration, x event.Object, gone bool) {
	changed := false
	switch x.Kind {
	case "BGPAdvertisement":
		changed = a.hearAdvertisement(x, gone)
	case "IPAddressPool":
		var in struct {
			APIVersion string `json:"apiVersion"`
		}
		foreign := json.Unmarshal(x.JSON, &in) == nil && strings.HasPrefix(in.APIVersion, "metallb.io/")
		was, known := a.foreign[x.Name]
		changed = known && was != foreign
		a.foreign[x.Name] = foreign
	case "L2Advertisement":
		if changed = x.Verb == "create"; changed {
			a.segments++
		} else if changed = gone; changed {
			a.segments--
		}
	}
	if changed && at > 0 {
		a.changed = at
	}
	a.ever = a.ever || len(a.advertisements)+a.segments > 0
}

// hearAdvertisement tells whether an advertisement goes elsewhere from now on.
func (a *advertising) hearAdvertisement(x event.Object, gone bool) (changed bool) {
	id := x.Namespace + "/" + x.Name
	was, known := a.advertisements[id]
	var in advertisementJSON
	delete(a.advertisements, id)
	is := !gone && json.Unmarshal(x.JSON, &in) == nil
	if is {
		a.advertisements[id] = in
	}
	was.Spec.AggregationLength, in.Spec.AggregationLength = 0, 0
	return known != is || !reflect.DeepEqual(was, in)
}

// reaches tells whether a peer is to be sent the addresses of a pool; not sure where selectors say so, or where there was an
// advertisement once and is none. Before format 2 a pool that no advertisement is about goes to everybody.
func (a *advertising) reaches(peer, pool string, format uint32) (is, sure bool) {
	about := false
	for _, ad := range a.advertisements {
		s := ad.Spec
		if len(s.PoolLabels)+len(s.Nodes)+len(s.Services) > 0 {
			return false, false
		}
		if len(s.Pools) > 0 && !slices.Contains(s.Pools, pool) {
			continue
		}
		about = true
		is = is || len(s.Peers) == 0 || slices.Contains(s.Peers, peer)
	}
	if about {
		return is, true
	}
	if !a.foreign[pool] || format <= formerFormat || !a.ever {
		return true, true
	}
	return false, len(a.advertisements)+a.segments > 0
}

// addressed tells whether a switch is to be told of an address by members: of its family, and by what users say of advertisements.
// It is not sure where that is not plain, or new.
func (j *judge) addressed(v *fsm.View, sw string, a netip.Addr) (is, sure bool) {
	if !j.scene.exchanges(sw, a) {
		return false, true
	}
	ads := &j.kube.advertising
	if ads.changed != never && j.scene.now-ads.changed < j.bounds.L1 {
		return false, false
	}
	owners := v.Owners(a.String())
	if len(owners) == 0 {
		owners = []*fsm.Allocation{{}}
	}
	pool := string(owners[0].Pool())
	for _, owner := range owners {
		if string(owner.Pool()) != pool {
			return false, false
		}
	}
	return ads.reaches(sw, pool, v.Group().Format)
}

// nowhere tells whether an address surely goes to no switch, though there are some.
func (j *judge) nowhere(v *fsm.View, a netip.Addr) bool {
	return len(j.topology.Switches) > 0 && !slices.ContainsFunc(j.topology.Switches, func(sw string) bool {
		is, sure := j.addressed(v, sw, a)
		return is || !sure
	})
}

// mustBeTold tells whether a switch surely is to be told of an address.
func (j *judge) mustBeTold(v *fsm.View, sw string, a netip.Addr) bool {
	is, sure := j.addressed(v, sw, a)
	return is && sure
}
