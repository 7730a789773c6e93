// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
)

// s9 holds what switches are told against what kernels really steer.
//
// A path that is new at a switch, from an undisturbed member in contact with a quorum, must lead to a node whose kernel steers the
// address, all of them if it is of a prefix of many: under the boot that the group knows of. What the kernel let go within S8 before is forgiven, since the
// announcement was under way, and so is what it never had when somebody took other things away within that time. And a kernel lets go of an address only once no path at any switch leads to it there, of whatever prefix,
// but those of members that have been away for as long as switches keep what they announced.
//
// A node that says on a segment that it has an address steers it, too.
type s9 struct {
	idle
	*judge
	held   map[route][]event.Path         // as last seen
	ever   map[bootOf]map[netip.Addr]bool // what a boot of a node steers, or did at its end
	doubts []doubt
}

// bootOf is a life of a machine.
type bootOf struct{ node, boot string }

func newS9(j *judge) rule {
	return &s9{judge: j, held: map[route][]event.Path{}, ever: map[bootOf]map[netip.Addr]bool{}}
}

func (r *s9) hear(e event.Stamped) {
	r.resolve(r.scene.now)
	switch x := e.Event.(type) {
	case event.Forwarding:
		r.announced(e.Number, x)
	case event.Steered:
		r.steered(e.Number, x)
	case event.Claim:
		r.claimed(e.Number, x)
	}
}

func (r *s9) announced(number uint64, x event.Forwarding) {
	key := route{x.Switch, x.Prefix}
	old := r.held[key]
	r.held[key] = x.Paths
	if r.record.View().Group().Settings.Unsteered {
		return
	}
	for _, p := range x.Paths {
		known := slices.ContainsFunc(old, func(o event.Path) bool { return o.Member == p.Member && o.NextHop == p.NextHop })
		node := r.scene.nodeAt[p.NextHop]
		if known || p.Stale || p.LongLived || node == "" || !r.scene.inQuorum(p.Member) || !r.scene.unexcused(p.Member) {
			continue
		}
		r.checked()
		for _, a := range addresses(x.Prefix) {
			if r.ready(node, a) {
				continue
			}
			r.broken(fmt.Sprintf("%s via %s", x.Prefix, node), fmt.Sprintf("%s announced it to %s, and the kernel does not steer %s", p.Member, x.Switch, a),
				r.scene.steered[node].number, number)
			break
		}
	}
}

// claimed judges what a node says on a segment: its kernel steers the address.
func (r *s9) claimed(number uint64, x event.Claim) {
	if r.record.View().Group().Settings.Unsteered || !r.scene.freeFor(x.Node, r.bounds.S8) {
		return
	}
	r.checked()
	if !r.ready(x.Node, x.Address) {
		r.broken(fmt.Sprintf("%s at %s", x.Address, x.Node), fmt.Sprintf("it says on %s that it has the address, and its kernel does not steer it", x.Segment),
			r.scene.steered[x.Node].number, number)
	}
}

// ready tells whether the kernel of a node steers an address, or did a moment ago, or did as long as the group could
// know.
func (r *s9) ready(node string, a netip.Addr) bool {
	is := r.scene.steered[node]
	if at, left := is.left[a]; is.now[a] || left && r.scene.now-at <= r.bounds.S8 {
		return true
	}
	if at, meddled := r.scene.meddled[node]; meddled && r.scene.now-at <= r.bounds.S8 {
		return true // what it adds for a new address leads nowhere until it has found out what is missing below
	}
	n, ok := fsm.Get[*fsm.Node](r.record.View(), fsm.TableNodes, node)
	unseen := r.scene.dark[node] || ok && string(n.Boot) != r.scene.boots[node]
	return ok && unseen && r.ever[bootOf{node, string(n.Boot)}][a]
}

// steered judges what a kernel let go of. It speaks only once it is clear that the node did not lose its power.
func (r *s9) steered(number uint64, x event.Steered) {
	life := bootOf{x.Node, x.Boot}
	before := r.ever[life]
	now := map[netip.Addr]bool{}
	for _, a := range x.Addresses {
		now[a] = true
	}
	r.ever[life] = now
	doubt := doubt{at: r.scene.now, life: life, before: before}
	for _, a := range sortedAddresses(before) {
		if now[a] || x.By == "hand" || !r.scene.unexcused(x.Node) {
			continue
		}
		r.checked()
		for _, sw := range r.topology.Switches {
			doubt.tell = append(doubt.tell, r.contradict(sw, a, x.Node, number)...)
		}
	}
	if len(now) < len(before) {
		r.doubts = append(r.doubts, doubt)
	}
}

// contradict gives what is to be said of paths at a switch that lead to an address at a node whose kernel let go of it.
func (r *s9) contradict(sw string, a netip.Addr, node string, number uint64) (tell []func()) {
	for _, f := range r.scene.ways.covering(sw, a) {
		for _, p := range f.Paths {
			if r.scene.nodeAt[p.NextHop] != node || r.away(sw, p.Member) {
				continue
			}
			tell = append(tell, func() {
				r.broken(fmt.Sprintf("%s via %s", fsm.HostPrefix(a), node),
					fmt.Sprintf("its rules went, and %s still has a path of %s to %s", sw, p.Member, f.Prefix), f.number, number)
			})
		}
	}
	return tell
}

// doubt is a kernel that let go of addresses at a moment; it may turn out to have lost its power.
type doubt struct {
	at     time.Duration
	life   bootOf
	before map[netip.Addr]bool
	tell   []func()
}

// resolve speaks about what happened before a time.
func (r *s9) resolve(before time.Duration) {
	for len(r.doubts) > 0 && r.doubts[0].at < before {
		d := r.doubts[0]
		r.doubts = r.doubts[1:]
		if r.scene.dark[d.life.node] && r.scene.darkAt[d.life.node] == d.at {
			r.ever[d.life] = d.before
			continue
		}
		for _, tell := range d.tell {
			tell()
		}
	}
}

func (r *s9) tick() { r.resolve(r.scene.now) }

func (r *s9) finish() { r.resolve(r.scene.now + 1) } // nothing more comes of this moment

// away tells whether a member has been out of touch for as long as switches keep what it announced.
func (r *s9) away(sw, member string) bool {
	gone := r.bounds.Hold + r.bounds.Restart + r.bounds.Stale
	since := r.scene.now
	if c, ok := r.scene.contact[member]; ok && !c.quorum {
		since = c.since
	}
	if s := r.scene.sessions[link{sw, member}]; !s.up {
		since = min(since, s.since)
	}
	return r.scene.now-since >= gone-time.Second
}
