// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"cmp"
	"hash/fnv"
	"math"
	"net/netip"
	"slices"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// Step is what shall be committed of one address, in one entry.
type Step struct {
	VIP      netip.Addr
	Commands []fsm.Command
	Why      string
}

// Decide says what is to be committed now. Leases that shall end are marked first: their holders are not told of them any
// more, whether or not that is committed soon.
func (k *Keeper) Decide(now time.Duration, v *fsm.View) []Step {
	if !k.Keeps(v) {
		return nil
	}
	s := &sitting{Keeper: k, now: now, policy: newPolicy(v), load: map[fsm.NodeID]int{}, kept: map[fsm.NodeID][]string{}}
	leases := fsm.List[*fsm.Lease](v, fsm.TableLeases)
	held := make(map[netip.Addr]*fsm.Lease, len(leases))
	for _, l := range leases {
		held[l.VIP] = l
		s.load[l.Holder]++
	}
	for vip, e := range k.ending {
		if l := held[vip]; l == nil || l.Fence != e.Fence {
			delete(k.ending, vip) // it has ended
		}
	}
	wanted := s.wanted()
	k.due = math.MaxInt64
	if again := k.forget(now); again > now {
		k.due = again
	}
	for _, l := range leases {
		if at := k.ends(l); !l.Keep && at > now {
			k.due = min(k.due, at)
		}
		_, found := slices.BinarySearchFunc(wanted, l.VIP, netip.Addr.Compare)
		s.judge(l, found)
	}
	without := map[netip.Addr]bool{}
	for _, vip := range wanted {
		if held[vip] == nil {
			without[vip] = true
			s.grant(vip)
		}
	}
	for vip := range k.wanting {
		if !without[vip] {
			delete(k.wanting, vip)
		}
	}
	s.holds()
	return s.steps
}

// sitting is one run of Decide.
type sitting struct {
	*Keeper
	*policy
	now   time.Duration
	load  map[fsm.NodeID]int
	kept  map[fsm.NodeID][]string // addresses that a silent node keeps and shall not, or others could have
	steps []Step
}

// judge looks at one lease.
func (s *sitting) judge(l *fsm.Lease, wanted bool) {
	may := s.nodes(l.VIP)
	serves := slices.ContainsFunc(may, func(n *fsm.Node) bool { return n.ID == l.Holder })
	others := slices.DeleteFunc(s.able(l.VIP, may), func(id fsm.NodeID) bool { return id == l.Holder })
	marked := s.ending[l.VIP]
	why := ""
	switch {
	case marked != nil && marked.Fence == l.Fence:
		why = cmp.Or(marked.why, "taken back")
	case !wanted:
		why = "nobody asks for it any more"
	case s.leaving(l.Holder):
		why = string(l.Holder) + " gives it back"
	case !serves:
		why = string(l.Holder) + " does not serve it any more"
	case len(others) > 0 && s.over(s.now, l):
		why = string(l.Holder) + " has not renewed it for a term"
	case len(others) > 0 && s.present(s.now, l.Holder) && s.idle(l, others):
		why = "the links of " + string(l.Holder) + " for it do not work, or are in other networks"
	case s.present(s.now, l.Holder) && s.linkless(l):
		why = "no link of " + string(l.Holder) + " is for it: see spec.interfaces of the L2Advertisements of its pool"
	case len(others) > 0 && s.called(l, others):
		why = "an operator moved its Service to another node"
	case s.policy.kept(l.VIP) != l.Keep && s.present(s.now, l.Holder):
		why = "what its holder does when it is cut off has changed"
	case s.t.Term != l.Term && s.present(s.now, l.Holder):
		why = "the term of leases has changed"
	}
	if l.Keep && (len(others) > 0 || why != "") && !s.present(s.now, l.Holder) && s.now >= s.began+wait(l.Term) {
		s.kept[l.Holder] = append(s.kept[l.Holder], l.VIP.String())
	}
	if why == "" && !s.released(l) {
		return
	}
	s.end(l, why)
	end := &fsm.EndLease{VIP: l.VIP, Fence: l.Fence}
	switch {
	case s.letGo(l):
		end.Word, why = fsm.WordHolder, cmp.Or(why, string(l.Holder)+" is back after an operator vouched that it does not answer")
	case s.over(s.now, l):
	case s.released(l) && !s.present(s.now, l.Holder):
		end.Word, why = fsm.WordOperator, "an operator vouches that "+string(l.Holder)+" does not answer"
	default:
		return // it is still to be waited for
	}
	step := Step{VIP: l.VIP, Commands: []fsm.Command{end}, Why: why}
	s.load[l.Holder]--
	if wanted {
		if next, ok := s.choose(l.VIP, s.able(l.VIP, may), l.Holder); ok {
			step.Commands = append(step.Commands, s.granted(l.VIP, next))
		}
	}
	s.steps = append(s.steps, step)
}

// grant finds a holder for an address that has none. For the longest term nobody gets one: somebody may hold what the
// record lost when it was restored.
func (s *sitting) grant(vip netip.Addr) {
	if _, since := s.wanting[vip]; !since {
		s.wanting[vip] = s.now
	}
	if s.now < s.began+wait(Longest) || !s.v.Group().Quarantine.IsZero() {
		return
	}
	may := s.nodes(vip)
	silent := slices.ContainsFunc(may, func(n *fsm.Node) bool { return n.Liveness == fsm.NodeUp && !s.present(s.now, n.ID) })
	if silent && s.now < s.wanting[vip]+s.t.Settle {
		return
	}
	if next, ok := s.choose(vip, s.able(vip, may), ""); ok {
		s.steps = append(s.steps, Step{VIP: vip, Commands: []fsm.Command{s.granted(vip, next)}, Why: "nobody answers for it"})
	}
}

func (s *sitting) granted(vip netip.Addr, node fsm.NodeID) fsm.Command {
	s.load[node]++
	return &fsm.GrantLease{VIP: vip, Holder: node, Term: s.t.Term, Keep: s.policy.kept(vip)}
}

// able lists the nodes that can answer for an address now, of those that may. If some are in the network that it is in, the
// others are in other segments: whoever looks for it does not hear them. Nodes that renew but are not taken for up, as one is
// for a while that came back, are the last resort: an address that they answer for is better off than one that nobody does.
func (s *sitting) able(vip netip.Addr, may []*fsm.Node) []fsm.NodeID {
	near := func(n *fsm.Node) bool { _, near := s.reaches(vip, n.ID); return near }
	some := slices.ContainsFunc(may, near)
	var up, last []fsm.NodeID
	for _, n := range may {
		works, _ := s.reaches(vip, n.ID)
		if !works || some && !near(n) || !s.present(s.now, n.ID) || s.leaving(n.ID) || s.word(n.ID, vip) {
			continue
		}
		if n.Liveness == fsm.NodeUp {
			up = append(up, n.ID)
		} else {
			last = append(last, n.ID)
		}
	}
	if len(up) > 0 {
		return up
	}
	return last
}

// idle tells whether the links of a lease's holder for it are of no use, where others' are.
func (s *sitting) idle(l *fsm.Lease, others []fsm.NodeID) bool {
	works, near := s.reaches(l.VIP, l.Holder)
	return !works || !near && slices.ContainsFunc(others, func(id fsm.NodeID) bool {
		_, near := s.reaches(l.VIP, id)
		return near
	})
}

// linkless tells whether a lease's holder has links and none of them is for the address: it answers nowhere, whoever else could. A link that is down, or
// deaf, is still for it.
func (s *sitting) linkless(l *fsm.Lease) bool {
	session := s.sessions[l.Holder]
	return session != nil && len(session.Links) > 0 && len(desired.Serving(session.Links, s.interfaces(l.VIP, l.Holder), l.VIP)) == 0
}

// reaches tells whether a node's links for an address work, and whether they are in the network that the address is in.
func (s *sitting) reaches(vip netip.Addr, node fsm.NodeID) (works, near bool) {
	session := s.sessions[node]
	if session == nil {
		return false, false
	}
	for _, l := range desired.Serving(session.Links, s.interfaces(vip, node), vip) {
		works, near = works || l.Works(), near || l.Near(vip)
	}
	return works, near
}

// steady tells whether they have for a while.
func (s *sitting) steady(vip netip.Addr, node fsm.NodeID) bool {
	session := s.sessions[node]
	return slices.ContainsFunc(desired.Serving(session.Links, s.interfaces(vip, node), vip), func(l desired.Link) bool {
		return l.Works() && s.now-session.works[l.Name] >= s.t.Steady
	})
}

// choose picks a node: the one that an operator moved the address to, then the former holder if it still can, then one whose links have worked for a while, then the one that
// answers for the fewest addresses; among equals chance decides, the same for all leaders.
func (s *sitting) choose(vip netip.Addr, able []fsm.NodeID, former fsm.NodeID) (fsm.NodeID, bool) {
	if len(able) == 0 {
		return "", false
	}
	rank := func(id fsm.NodeID) int {
		switch {
		case s.bidden(vip, id):
			return -1
		case id == former:
			return 0
		case s.steady(vip, id):
			return 1
		}
		return 2
	}
	return slices.MinFunc(able, func(a, b fsm.NodeID) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(s.load[a], s.load[b]), cmp.Compare(draw(vip, a), draw(vip, b)), cmp.Compare(a, b))
	}), true
}

// draw is a number that address and node determine.
func draw(vip netip.Addr, node fsm.NodeID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(vip.AsSlice())
	_, _ = h.Write([]byte(node))
	return h.Sum64()
}
