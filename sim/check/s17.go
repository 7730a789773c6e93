// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// s17 holds where calls get to that policies lead to listed addresses, which are probed, against which of these there are for a node to reach.
//
// A node's rows by a policy give the addresses that it can reach, all of them and no others; where it can reach none, all that are listed. That
// counts once the node has carried out the policy as it is, and what it can reach is as it is, for as long as it takes to find out; and for as
// long nothing befell the node but that it is cut off from others, since what it finds out is its own. An agent that was ended and starts anew, of
// which nothing else is lost, has to find out again; until then it goes by the record, and where that says just what the node can reach, its
// tables are right as soon as it is at work.
//
// And what most of the nodes of a policy could reach, or could not, for as long as it takes to agree, the record says, whatever the others do.
// That counts while these nodes and the leader are left alone. Where there is no majority, both are right.
//
// Tables without room for everything are not judged: what does not fit is left out.
type s17 struct {
	idle
	*judge
	probers
	seen map[sight]view
	// told is since when a node has carried a policy out as it is, said as of which revision the record says what it does of a policy's addresses.
	told map[carrier]telling
	said map[fsm.PolicyID]fsm.Revision
	last time.Duration // when it was looked at
}

// sight is that a node looks at a listed address.
type sight struct{ node, address string }

// view is whether it can reach it, and since when.
type view struct {
	blocked bool
	since   time.Duration
	number  uint64
}

// carrier is a node that carries out a policy.
type carrier struct {
	node   string
	policy fsm.PolicyID
}

// telling is as of which revision, and since when.
type telling struct {
	as fsm.Revision
	at time.Duration
}

func newS17(j *judge) rule {
	return &s17{judge: j, probers: newProbers(j), seen: map[sight]view{}, told: map[carrier]telling{}, said: map[fsm.PolicyID]fsm.Revision{}}
}

const (
	// foundOut is how long it takes to find out: probes are made once a second and wait for one, and two in a row count. Tables follow.
	foundOut = 6 * time.Second
	// agreedOn is how long it takes to agree on it: heartbeats, and a look of the leader once a second.
	agreedOn = 10 * time.Second
	// takenUp is how long it takes an agent that starts to bring tables to what it was told before.
	takenUp  = 1500 * time.Millisecond
	lookedAt = 100 * time.Millisecond
)

func (r *s17) hear(e event.Stamped) {
	r.probers.hear(e)
	if x, is := e.Event.(event.Link); is {
		if a, is := strings.CutPrefix(x.To, start.ListedPrefix); is {
			r.seen[sight{x.From, a}] = view{!x.Up, e.At, e.Number}
		}
	}
}

func (r *s17) step(s *step) {
	r.probers.step(s)
	if s.replaced {
		return
	}
	fsm.Changes(s.before, s.after, fsm.TablePolicies, func(was, is *fsm.Policy) {
		if is != nil && (was == nil || was.UID != is.UID || !slices.Equal(was.Verdicts, is.Verdicts)) {
			r.said[is.ID] = s.after.Revision()
		}
	})
}

func (r *s17) tick() {
	if !r.topology.Sockets.Probes || r.topology.Sockets.Room > 0 || r.scene.now-r.last < lookedAt {
		return
	}
	r.last = r.scene.now
	v := r.record.View()
	there := map[carrier]telling{}
	for _, d := range fsm.List[*fsm.Policy](v, fsm.TablePolicies) {
		if !d.Probe.Wanted() {
			continue
		}
		for _, n := range r.topology.Nodes {
			at := carrier{n.Name, d.ID}
			if t, has := r.carries(v, d, at); has {
				there[at] = t
				if r.scene.now-t.at >= foundOut && r.works(n.Name, foundOut) {
					r.rows(v, d, n.Name)
				}
			}
		}
		r.verdicts(d, there)
	}
	r.told = there
}

// carries tells since when a node carries out a policy as it is: it said so, and nothing that it had then was lost.
func (r *s17) carries(v *fsm.View, d *fsm.Policy, at carrier) (telling, bool) {
	if !d.EffectiveOn(fsm.NodeID(at.node)) || !r.acknowledged(v, at.node, d.Since) {
		return telling{}, false
	}
	if t, was := r.told[at]; was && t.as == d.Since {
		return t, true
	}
	return telling{d.Since, r.scene.now}, true
}

// reaches tells whether a node can reach an address, whether that has been so for a time, and the event that said so.
func (r *s17) reaches(node string, a netip.Addr, d time.Duration) (can, settled bool, number uint64) {
	s, ever := r.seen[sight{node, a.String()}]
	return !s.blocked, !ever || r.scene.now-s.since >= d, s.number
}

// probed tells whether something is known of a policy's addresses at a captured place: that of a port of UDP is what is known of ports of TCP.
func probed(d *fsm.Policy, at fsm.Capture) bool {
	return slices.ContainsFunc(d.Captures, func(c fsm.Capture) bool { return c.Port.Protocol == fsm.TCP && c.Address.Is4() == at.Address.Is4() })
}

// rows judges what a node's tables have by a policy.
func (r *s17) rows(v *fsm.View, d *fsm.Policy, node string) {
	tables, stays := r.scene.tables(node), r.stays(node, foundOut)
	for _, c := range d.Captures {
		if !stays && !r.heardOf(v, d, c, node) {
			continue
		}
		row, there := tables.rows[dialled{c.Address, c.Port.Number, protocolName(c.Port)}]
		if !there || !probed(d, c) {
			continue
		}
		for _, way := range []event.Way{row.Way, row.Beyond} {
			if way.Rule == d.Number { // others are of policies that count before this one
				r.way(d, c, node, way, row.number)
			}
		}
	}
}

// heardOf tells whether a node has heard what the record says of a policy's addresses at a place of TCP, and that is just what it can reach.
func (r *s17) heardOf(v *fsm.View, d *fsm.Policy, c fsm.Capture, node string) bool {
	n, ok := fsm.Get[*fsm.Node](v, fsm.TableNodes, node)
	if said, ever := r.said[d.ID]; !ok || !ever || n.Acknowledged.Before(said) || c.Port.Protocol != fsm.TCP {
		return false
	}
	return !slices.ContainsFunc(d.Backends, func(b fsm.PolicyBackend) bool {
		can, _, _ := r.reaches(node, b.Address, 0)
		return b.Address.Is4() == c.Address.Is4() && bad(d, fsm.Probed{Address: b.Address, Port: fsm.Port{Protocol: c.Port.Protocol, Number: c.Target}}) == can
	})
}

// bad tells whether the record says so of an address.
func bad(d *fsm.Policy, at fsm.Probed) bool {
	return slices.ContainsFunc(d.Verdicts, func(w fsm.ProbeVerdict) bool { return w.Address == at.Address && w.Port == at.Port && !w.Healthy })
}

// way judges where calls to a captured place get to.
func (r *s17) way(d *fsm.Policy, c fsm.Capture, node string, way event.Way, number uint64) {
	want, all := map[string]bool{}, map[string]bool{}
	shown := []uint64{number}
	for _, b := range d.Backends {
		if b.Address.Is4() != c.Address.Is4() {
			continue
		}
		can, settled, by := r.reaches(node, b.Address, foundOut)
		if !settled {
			return
		}
		key := netip.AddrPortFrom(b.Address, c.Target).String()
		if all[key] = true; can {
			want[key] = true
		}
		shown = append(shown, by)
	}
	if len(want) == 0 {
		want = all
	}
	if len(all) == 0 {
		return
	}
	r.checked()
	have := map[string]bool{}
	for _, b := range way.Backends {
		have[b] = true
	}
	if !maps.Equal(have, want) {
		r.broken(fmt.Sprintf("calls on %s to %s by %s", node, netip.AddrPortFrom(c.Address, c.Port.Number), d.ID),
			fmt.Sprintf("they get to %v, and by what it can reach of %v they shall get to %v", sortedKeys(have), sortedKeys(all), sortedKeys(want)), shown...)
	}
}

// verdicts judges what the record says of the addresses of a policy.
func (r *s17) verdicts(d *fsm.Policy, told map[carrier]telling) {
	if !r.agree() {
		return
	}
	for _, at := range d.Probed() {
		if at.Port.Protocol != fsm.TCP {
			continue
		}
		most, can, cannot := 0, 0, 0
		var shown []uint64
		for _, n := range r.topology.Nodes {
			if !d.EffectiveOn(fsm.NodeID(n.Name)) {
				continue
			}
			most++
			t, carries := told[carrier{n.Name, d.ID}]
			reaches, settled, by := r.reaches(n.Name, at.Address, agreedOn)
			switch {
			case !carries || r.scene.now-t.at < agreedOn || !settled || !r.stays(n.Name, agreedOn) || !r.scene.worksFor(n.Name, agreedOn):
			case reaches:
				can++
			default:
				cannot++
			}
			shown = append(shown, by)
		}
		if 2*max(can, cannot) <= most {
			continue
		}
		r.checked()
		if said := bad(d, at); said != (cannot > can) {
			r.broken(fmt.Sprintf("%s of %s", netip.AddrPortFrom(at.Address, at.Port.Number), d.ID),
				fmt.Sprintf("%d nodes of %d can reach it and %d cannot, and the record says that it is bad: %v", can, most, cannot, said), shown...)
		}
	}
}
