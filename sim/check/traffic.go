// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/sim/event"
)

// flows is S8 as clients see it: who was wanted to be served is served, but for a stated time after a change. A request
// that is not served is excused
//
//   - for L3 after a user changed the Service, its endpoints or nodes, or other endpoints of it rest for failed probes, counted while a majority of members and the API
//     server are undisturbed, and have asked again after trouble with it: before that the group cannot have done its work;
//   - while its Service, or that one's slices, are held back until an operator says a word, and for L3 after it, counted alike;
//   - for L3, counted alike, after a restore or recover lost what was agreed on about the Service, or about a node that
//     serves it: what it is then must be found anew;
//   - for S8 after power came or went at the node that it was sent to or at that of the pod that it was passed on to, or
//     at any that should serve it where it was sent to none, counted while a majority is undisturbed and under one leader, and for
//     one without power from when the group, if it held so many silent nodes, goes on;
//   - where only members lead that cannot know that its hop is no longer committed, or have been back for less than S8:
//     how long they may is judged at the switch;
//   - during a fault of such a node (unless it has no power, another next hop does, and not so many nodes are silent at
//     once that they are held: design §6), of the switch or of the client,
//     and for L3 (a switch: L1) after it;
//   - where no switch takes it, during faults of all of them;
//   - where there is no pool, or no undisturbed node with a pod that weighs anything, that could serve it: under the policy Local none whose pods all
//     rest for failed probes.
//
// Faults of members alone excuse nothing else: losing the leader, a minority or all of them costs no request.
type flows struct {
	// changed is since when a Service has changes that the group need not have carried out.
	changed map[string]time.Duration
	// held are those of them that an operator has to say a word about first.
	held map[string]bool
	// powered is the same for nodes.
	powered map[string]time.Duration
}

func newFlows() flows {
	return flows{changed: map[string]time.Duration{}, powered: map[string]time.Duration{}}
}

func (f *flows) hear(j *judge, e event.Stamped) {
	switch x := e.Event.(type) {
	case event.Object:
		switch x.Kind {
		case "Service", "EndpointSlice":
			for id, s := range j.kube.services {
				if s.changed == e.At || s.moved == e.At {
					f.changed[id] = e.At
				}
			}
		case "Node", "IPAddressPool", "ConfigMap", "BGPPeer", "BGPAdvertisement":
			if j.kube.nodesAt == e.At || j.kube.configured == e.At {
				for id := range j.kube.services {
					f.changed[id] = e.At
				}
			}
		}
	case event.MachineDown:
		f.powered[x.Machine] = e.At
	case event.MachineUp:
		f.powered[x.Machine] = e.At
	}
}

// replaced takes in what a record that was replaced knows otherwise.
func (f *flows) replaced(j *judge, s *step) {
	differences, _ := fsm.Diff(s.before, s.after, math.MaxInt)
	for _, d := range differences {
		var ids []string
		switch d.Table {
		case fsm.TableServices:
			ids = []string{d.Key}
		case fsm.TableAllocations:
			ids = []string{d.Key[strings.Index(d.Key, " ")+1:]}
		case fsm.TableRoutes:
			address, _, _ := strings.Cut(d.Key, "/")
			for _, o := range slices.Concat(s.before.Owners(address), s.after.Owners(address)) {
				ids = append(ids, string(o.Service))
			}
		case fsm.TableNodes:
			for id := range j.kube.services {
				if slices.Contains(j.kube.serving(id), d.Key) {
					ids = append(ids, id)
				}
			}
		}
		for _, id := range ids {
			f.changed[id] = s.At
		}
	}
}

// holds follows what waits for an operator: nothing is done about the Services that a hold names before that, and then it takes
// its time.
func (f *flows) holds(before *fsm.View, s *step) {
	news := false
	fsm.Changes(before, s.after, fsm.TableHolds, func(was, is *fsm.Hold) {
		news = true
		for _, h := range []*fsm.Hold{was, is} {
			for _, id := range heldServices(h) {
				f.changed[id] = s.At
			}
		}
	})
	if news {
		f.held = heldNow(s.after)
	}
}

// heldNow are the Services that an operator has to say a word about.
func heldNow(v *fsm.View) map[string]bool {
	held := map[string]bool{}
	for _, h := range fsm.List[*fsm.Hold](v, fsm.TableHolds) {
		for _, id := range heldServices(h) {
			held[id] = held[id] || !h.Released
		}
	}
	return held
}

// heldServices are those that a hold is about, none for nil.
func heldServices(h *fsm.Hold) (ids []string) {
	if h == nil || h.Of != string(world.KindService) && h.Of != string(world.KindEndpointSlice) {
		return nil
	}
	for _, subject := range h.Subjects {
		id, _, _ := strings.Cut(subject, " ") // namespace/name, and what tells lives of that name apart
		ids = append(ids, id)
	}
	return ids
}

// settle lets go of changes that the group had its time for, which waits for silent nodes until some time.
func (f *flows) settle(j *judge, heldUntil time.Duration) {
	now, s := j.scene.now, j.scene
	for id, at := range f.changed {
		if f.held[id] {
			continue
		}
		asked := max(j.askedAgain(s.misled), j.askedAgain(s.freed["kubernetes"]))
		if s.soundFor(max(at, asked, s.stuck), j.bounds.L3) && s.freeFor("kubernetes", j.bounds.L3) {
			delete(f.changed, id)
		}
	}
	for n, at := range f.powered {
		if s.dark[n] && heldUntil != never {
			at = max(at, heldUntil)
		}
		if s.soundFor(at, j.bounds.S8) && s.leader != "" && now-s.lead >= j.bounds.S8 {
			delete(f.powered, n)
		}
	}
}

func (r *s8) flow(e event.Stamped, x event.Flow) {
	r.weighed(e, x)
	if !x.Wanted {
		return
	}
	r.checked()
	if x.Served || r.excused(x) {
		return
	}
	where := x.Node
	if where == "" {
		where = "no node"
	}
	r.broken(fmt.Sprintf("%s port %d at %s", x.Address, x.Port, x.Switch),
		fmt.Sprintf("a request was wanted to be served and was not, via %s: %s", where, x.Why), e.Number,
		r.scene.ways.to(x.Switch, x.Address).number)
}

func (r *s8) excused(x event.Flow) bool {
	if x.Switch == "" { // none took it
		return !slices.ContainsFunc(r.topology.Switches, r.scene.unexcused)
	}
	if !r.mustBeTold(r.record.View(), x.Switch, x.Address) || !r.scene.freeFor(x.Switch, r.bounds.L1) || !r.scene.freeFor(x.Client, r.bounds.L3) {
		return true
	}
	if !x.NextHop.IsValid() && r.scene.mute(x.Switch, r.bounds.S8) {
		return true
	}
	if x.NextHop.IsValid() && r.left(x.Switch, fsm.HostPrefix(x.Address), x.NextHop) {
		return true
	}
	var nodes []string
	if x.NextHop.IsValid() {
		nodes = append(nodes, r.scene.nodeAt[x.NextHop])
	}
	if x.Behind != "" {
		nodes = append(nodes, x.Behind)
	}
	able := false
	owners := r.ownersOf(x)
	for _, id := range owners {
		if _, pending := r.flows.changed[id]; pending {
			return true
		}
		if s, ok := fsm.Get[*fsm.Service](r.record.View(), fsm.TableServices, id); ok && s.Pending.Code != "" {
			return true
		}
		for _, n := range r.kube.serving(id) {
			able = able || r.scene.worksFor(n, r.bounds.L3) && r.kube.weighs(id, n) && !deafAt(r.record.View(), fsm.ServiceID(id), fsm.NodeID(n))
			if !x.NextHop.IsValid() {
				nodes = append(nodes, n)
			}
		}
	}
	if len(owners) == 0 || !able {
		return true
	}
	others := r.othersHavePower(committed(r.record.View(), fsm.HostPrefix(x.Address)), x.NextHop)
	return slices.ContainsFunc(nodes, func(n string) bool {
		_, pending := r.flows.powered[n]
		return pending || !r.scene.freeFor(n, r.bounds.L3) && !(r.scene.dark[n] && others && !r.massHeld())
	})
}

// ownersOf lists the Services that a request was for: by the record, and by what users were told.
func (r *s8) ownersOf(x event.Flow) (ids []string) {
	for _, o := range r.record.View().Owners(x.Address.String()) {
		ids = append(ids, string(o.Service))
	}
	if len(ids) > 0 {
		return ids
	}
	for _, id := range r.kube.names {
		for _, a := range r.kube.services[id].status {
			if a == x.Address && r.kube.wanted(id) {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// cutPrefix and viaText read the keys of overdue hops: "switch prefix via hop [under leader]".
func cutPrefix(key, prefix string) (string, bool) { return strings.CutPrefix(key, prefix) }

func viaText(rest string) string {
	hop, _, _ := strings.Cut(rest, " ")
	return hop
}
