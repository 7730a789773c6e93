// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/sim/event"
)

// s8 compares what switches forward with what is committed, and with what clients see (traffic.go). For each switch and
// address, by the longest prefix that has it, while the switch is undisturbed, these must not last:
//
//   - unforwarded, S8: a committed hop is on a node with power, an undisturbed member that knows it holds a session,
//     and nothing is forwarded;
//   - uncommitted, S8: a path of an undisturbed member in contact, which has applied the news, leads to a hop that is
//     not committed (any more);
//   - undemoted, Demote + S8: the same with only members that run and have not applied the news, whatever keeps it from them: they have
//     heard of no leader, or of one that committed more than they have. Somebody in contact has a path for the prefix;
//   - stale, Restart + S8: the same with members that lost their session;
//   - kept, Hold + Restart + S8: the same with members that may be silent, and whose session has not noticed;
//   - dead, S8: a node without power is forwarded to, and another committed hop has power, while one member leads a
//     majority and not too many nodes are silent at once (the last hop stays, and a mass is held: design §6).
//
// Where nobody in contact has a path, what others announced stays: it is what was agreed on last.
type s8 struct {
	idle
	*judge
	wrong   map[string]overdue // by kind of wrong
	touched map[netip.Prefix]fsm.Index
	nodes   fsm.Index // when what counts of nodes changed last
	looked  time.Duration
	seen    uint64        // up to which change of the scene everything was looked at
	mass    time.Duration // when too many nodes were silent last
	flows   flows
	owners  owners
	had     map[string]bool // what may stay until the quarantine after a restore is over (docs/failures.md), by the key of the hop
	// deceived tells who takes a path away that it must, for all that it knows (see there).
	deceived deceived
}

// lookEvery is how often everything is looked at. Bounds are many times as long.
const lookEvery = 100 * time.Millisecond

// few is how many nodes may always go down together; together is for how long more are held.
const (
	few      = 2
	together = 10 * time.Second
)

func newS8(j *judge) rule {
	r := &s8{judge: j, wrong: map[string]overdue{}, touched: map[netip.Prefix]fsm.Index{}, mass: never, flows: newFlows(), owners: newOwners(j), deceived: newDeceived()}
	for _, kind := range r.kinds() {
		r.wrong[kind] = newOverdue()
	}
	return r
}

func (r *s8) kinds() []string {
	return []string{"unforwarded", "uncommitted", "undemoted", "stale", "kept", "dead"}
}

func (r *s8) bound(kind string) time.Duration {
	switch kind {
	case "undemoted":
		return r.bounds.Demote + r.bounds.S8
	case "stale":
		return r.bounds.Restart + r.bounds.S8
	case "kept":
		return r.bounds.Hold + r.bounds.Restart + r.bounds.S8
	}
	return r.bounds.S8
}

func (r *s8) step(s *step) {
	r.owners.step(s)
	before := s.before
	if s.replaced {
		r.keep(s)
		before = nil
		r.flows.replaced(r.judge, s)
	}
	fsm.Changes(before, s.after, fsm.TableRoutes, func(was, is *fsm.Route) {
		r.forgive(s, was, is)
		if is == nil {
			is = was
		}
		r.touched[is.Prefix] = s.index
	})
	r.flows.holds(before, s)
	fsm.Changes(before, s.after, fsm.TableServices, func(was, is *fsm.Service) {
		if was != nil && is != nil && restDiffers(was, is) {
			r.flows.changed[string(is.ID)] = s.At
		}
	})
	fsm.Changes(before, s.after, fsm.TableNodes, func(was, is *fsm.Node) {
		if was == nil || is == nil || was.Boot != is.Boot || !slices.Equal(was.Failed, is.Failed) {
			r.nodes = s.index
		}
	})
}

// keep notes what is announced when the record is replaced, or about to be: by the former record, and where switches lead by then. A record
// that is replaced in its quarantine leaves what stayed until then.
func (r *s8) keep(s *step) {
	if r.had == nil || s.before == nil || s.before.Group().Quarantine.IsZero() {
		r.had = map[string]bool{}
	}
	for _, at := range r.prefixes() {
		for _, hop := range r.scene.ways.to(at.at, at.prefix.Addr()).NextHops {
			r.had[hopKey(at.at, at.prefix, hop)] = true
		}
		if s.before == nil {
			continue
		}
		for hop := range committed(s.before, at.prefix) {
			r.had[hopKey(at.at, at.prefix, hop)] = true
		}
	}
}

// hopKey stands for a next hop of a prefix at a switch.
func hopKey(sw string, prefix netip.Prefix, hop netip.Addr) string {
	return sw + " " + prefix.String() + " via " + hop.String()
}

// forgive has nobody judged for requests to an address that lost a hop to lists which lack something.
func (r *s8) forgive(s *step, was, is *fsm.Route) {
	if was == nil || !r.deceived.is(r.scene.leader, string(world.KindEndpointSlice), r.scene.now, r.bounds.Retry) {
		return
	}
	kept := func(h fsm.NextHop) bool {
		return is != nil && slices.ContainsFunc(is.NextHops, func(o fsm.NextHop) bool { return o.Node() == h.Node() && !o.Withdrawing })
	}
	if slices.ContainsFunc(was.NextHops, func(h fsm.NextHop) bool { return !h.Withdrawing && !kept(h) }) {
		for _, a := range s.before.Owners(was.Prefix.Addr().String()) {
			r.flows.changed[string(a.Service)] = s.At
		}
	}
}

func (r *s8) hear(e event.Stamped) {
	r.deceived.hear(e)
	r.owners.hear(e)
	switch x := e.Event.(type) {
	case event.Forwarding:
		if x.Prefix.IsSingleIP() { // tick looks at all addresses of others, once what comes along with them was heard
			r.look(x.Switch, x.Prefix)
		}
	case event.Flow:
		r.flow(e, x)
	default:
		r.flows.hear(r.judge, e)
	}
}

func (r *s8) tick() {
	if r.scene.now-r.looked < lookEvery {
		return
	}
	r.looked = r.scene.now
	r.owners.tick()
	if silent := r.silent(); silent > few && 2*silent > len(r.topology.Nodes) {
		r.mass = r.scene.now
	}
	r.flows.settle(r.judge, r.heldUntil())
	if held := r.mass != never && r.scene.now-r.mass <= together+lookEvery; held || r.seen != r.scene.changes {
		r.seen = r.scene.changes
		for _, key := range r.prefixes() {
			r.look(key.at, key.prefix)
		}
	}
	for _, kind := range r.kinds() {
		o := r.wrong[kind]
		for _, key := range o.over(r.scene.now, r.bound(kind)) {
			w := o.since[key]
			r.broken(key, fmt.Sprintf("%s since %s: %s", kind, w.at, w.why), w.event)
		}
	}
}

// prefixes are those of all single addresses that switches or the record know, at each switch.
func (r *s8) prefixes() (out []route) {
	known := map[netip.Prefix]bool{}
	for p := range r.touched {
		known[p] = true
	}
	for p := range r.scene.ways.all {
		for _, a := range addresses(p.prefix) {
			known[fsm.HostPrefix(a)] = true
		}
	}
	for _, sw := range r.topology.Switches {
		for p := range known {
			out = append(out, route{sw, p})
		}
	}
	slices.SortFunc(out, func(a, b route) int { return cmp.Or(strings.Compare(a.at, b.at), a.prefix.Compare(b.prefix)) })
	return out
}

// look judges the prefix of one address at one switch as it is now: where the longest prefix leads that has the address.
func (r *s8) look(sw string, prefix netip.Prefix) {
	f := r.scene.ways.to(sw, prefix.Addr())
	key := sw + " " + prefix.String()
	hops := committed(r.record.View(), prefix)
	if len(hops) > 0 || len(f.NextHops) > 0 {
		r.checked()
	}
	up := r.scene.unexcused(sw)
	told := r.mustBeTold(r.record.View(), sw, prefix.Addr()) && r.announced(sw, hops)
	r.wrong["unforwarded"].note(key, up && len(f.NextHops) == 0 && told, r.scene.now, "a committed hop has power", f.number)
	r.forget(key+" via ", f.NextHops)
	for _, hop := range f.NextHops {
		r.lookAtHop(hopKey(sw, prefix, hop), sw, prefix, hop, hops, f, up)
	}
}

// forget drops what is held against hops that are no longer forwarded to.
func (r *s8) forget(prefix string, now []netip.Addr) {
	for _, kind := range r.kinds()[1:] {
		for key := range r.wrong[kind].since {
			if rest, ok := cutPrefix(key, prefix); ok && !slices.ContainsFunc(now, func(a netip.Addr) bool { return viaText(rest) == a.String() }) {
				delete(r.wrong[kind].since, key)
			}
		}
	}
}

func (r *s8) lookAtHop(key, sw string, prefix netip.Prefix, hop netip.Addr, hops map[netip.Addr]fsm.Index, f forwarding, up bool) {
	_, good := hops[hop]
	good = good || r.had[key] && !r.record.View().Group().Quarantine.IsZero()
	var well, away, gone, lost, others bool
	for _, p := range r.scene.ways.paths(sw, prefix.Addr()) {
		others = others || r.knows(sw, p.Member, prefix)
	}
	for _, p := range f.Paths {
		is := r.knows(sw, p.Member, prefix)
		if p.NextHop != hop || !p.Best {
			continue
		}
		switch {
		case is:
			well = true
		case !r.scene.sessions[link{sw, p.Member}].up:
			gone = true
		case r.scene.cut[link{sw, p.Member}], r.scene.frozen[p.Member] > 0, !r.scene.runs[p.Member]: // it cannot say that it steps aside
			lost = true
		default:
			away = true
		}
	}
	node := r.scene.nodeAt[hop]
	r.wrong["uncommitted"].note(key, up && !good && well, r.scene.now, "a member in contact announces a hop that is not committed", f.number)
	outlived := up && !good && !well && others
	r.wrong["undemoted"].note(key, outlived && away && !gone && !lost, r.scene.now, "a member out of contact leads to a hop that is not committed", f.number)
	r.wrong["stale"].note(key, outlived && gone && !away && !lost, r.scene.now, "a path without a session leads to a hop that is not committed", f.number)
	r.wrong["kept"].note(key, outlived && (gone || away || lost), r.scene.now, "a lost member's path leads to a hop that is not committed", f.number)
	dead := up && r.scene.dark[node] && r.scene.leader != "" && r.scene.sound != never && well && r.othersHavePower(hops, hop) && !r.massHeld()
	for _, m := range r.scene.members() { // under a new leader the time begins anew
		r.wrong["dead"].note(key+" under "+m, dead && m == r.scene.leader, r.scene.now, node+" has no power", f.number)
	}
}

// knows tells whether a member is in contact and has applied all that matters for a prefix.
func (r *s8) knows(sw, member string, prefix netip.Prefix) bool {
	return r.inContact(sw, member) && fsm.Index(r.scene.applied[member]) >= max(r.touched[prefix], r.nodes)
}

// left tells whether a hop is no longer committed, and only those lead there who cannot know, or had no time yet to say
// so: the kinds say how long that may be so.
func (r *s8) left(sw string, prefix netip.Prefix, hop netip.Addr) bool {
	_, good := committed(r.record.View(), prefix)[hop]
	return !good && !slices.ContainsFunc(r.scene.ways.to(sw, prefix.Addr()).Paths, func(p event.Path) bool {
		return p.Best && p.NextHop == hop && r.knows(sw, p.Member, prefix) && r.caughtUp(sw, p.Member)
	})
}

// caughtUp tells whether a member has been back for S8 since its last fault and the beginning of its session: what it wrote
// while it was cut off arrives only once it is sent again, and a new session repeats everything first.
func (r *s8) caughtUp(sw, member string) bool {
	return r.scene.freeFor(member, r.bounds.S8) && r.scene.now-r.scene.sessions[link{sw, member}].since >= r.bounds.S8
}

// silent counts the nodes that the group may count as fallen silent: those that a fault names, and those that are still
// down in the record, since the verdict on one that is back comes later.
func (r *s8) silent() (n int) {
	v := r.record.View()
	for _, node := range r.topology.Nodes {
		is, known := fsm.Get[*fsm.Node](v, fsm.TableNodes, node.Name)
		if !r.scene.unexcused(node.Name) || known && is.Liveness == fsm.NodeDown {
			n++
		}
	}
	return n
}

// heldUntil is when the group goes on that takes silence of so many nodes for a fault of its own, and waits; never if it does not.
func (r *s8) heldUntil() time.Duration {
	if r.mass == never {
		return never
	}
	return r.mass + together
}

// massHeld tells whether it waits.
func (r *s8) massHeld() bool { return r.mass != never && r.scene.now <= r.heldUntil() }

// announced tells whether a hop on a node with power is known to an undisturbed member that has a session.
func (r *s8) announced(sw string, hops map[netip.Addr]fsm.Index) bool {
	for a, since := range hops {
		if n := r.scene.nodeAt[a]; n == "" || r.scene.dark[n] {
			continue
		}
		for _, m := range r.scene.members() {
			if r.scene.runs[m] && r.scene.unexcused(m) && r.scene.sessions[link{sw, m}].up && fsm.Index(r.scene.applied[m]) >= since {
				return true
			}
		}
	}
	return false
}

// inContact tells whether a member is undisturbed, in contact with a quorum, and has a session with a switch.
func (r *s8) inContact(sw, member string) bool {
	return r.scene.runs[member] && r.scene.unexcused(member) && r.scene.inQuorum(member) && r.scene.sessions[link{sw, member}].up
}

func (r *s8) othersHavePower(hops map[netip.Addr]fsm.Index, but netip.Addr) bool {
	for a := range hops {
		if n := r.scene.nodeAt[a]; a != but && n != "" && r.scene.unexcused(n) && r.scene.runs[n] {
			return true
		}
	}
	return false
}
