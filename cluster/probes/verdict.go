// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"slices"

	"fairlead.io/fairlead/fsm"
)

// Opinion is what a node thinks of one place.
type Opinion uint8

// Opinions. Who does not know yet has no say, but counts among those who probe.
const (
	Unknown Opinion = iota
	Good
	Bad
)

// Subject is whose places are probed: a policy's, by its number, or else a Service's endpoints.
type Subject struct {
	Redirect uint32
	Service  fsm.ServiceID
}

// Report is what a node thinks of all places that it probes. Reports are not changed once they are handed on.
type Report map[Subject]map[fsm.Probed]Opinion

// Said is what a node says: its report, nil of one that probes nothing, and as of which revision it is of what is to be probed; zero where it does
// not tell.
type Said struct {
	Report
	Of fsm.Revision
}

// Heard are the nodes that this member hears of.
type Heard map[fsm.NodeID]Said

// Judge gives what the record should say of each policy, and of each of the Services, whose endpoints are probed or were, that it does not say
// yet, in order.
func Judge(record *fsm.View, services []*fsm.Service, heard Heard) (out []fsm.Command) {
	var silent []*fsm.Node
	for _, n := range fsm.List[*fsm.Node](record, fsm.TableNodes) {
		// A node without an agent probes nothing. Of one that the group says is down the same is known.
		if _, hears := heard[n.ID]; !hears && n.Liveness == fsm.NodeUp && !n.Acknowledged.IsZero() {
			silent = append(silent, n)
		}
	}
	nodes := map[fsm.NodeID]*fsm.Node{}
	for _, n := range fsm.List[*fsm.Node](record, fsm.TableNodes) {
		nodes[n.ID] = n
	}
	for _, r := range fsm.List[*fsm.Policy](record, fsm.TablePolicies) {
		if next := judge(r.Probed(), r.Verdicts, reportsOf(r, nodes, heard), silentFor(r, silent)); !slices.Equal(next, r.Verdicts) {
			out = append(out, &fsm.SetPolicyHealth{ID: r.ID, UID: r.UID, Verdicts: next})
		}
	}
	for _, s := range services {
		if next := judge(s.Probed(), s.Verdicts(), reportsOn(s, nodes, heard), uint32(len(silent))); !slices.Equal(next, s.Verdicts()) {
			out = append(out, &fsm.JudgeService{ID: s.ID, UID: s.UID, Verdicts: next})
		}
	}
	return out
}

// reportsOn are what nodes say of the endpoints of a Service: hosts that are none do not serve it.
func reportsOn(s *fsm.Service, nodes map[fsm.NodeID]*fsm.Node, heard Heard) (out []map[fsm.Probed]Opinion) {
	for id, said := range heard {
		if places := said.Report[Subject{Service: s.ID}]; len(places) > 0 && nodes[id] != nil {
			out = append(out, ofNow(places, said.Of, nodes[id], s.ProbedSince()))
		}
	}
	return out
}

// reportsOf are what hosts where a policy is effective say of it.
func reportsOf(r *fsm.Policy, nodes map[fsm.NodeID]*fsm.Node, heard Heard) (out []map[fsm.Probed]Opinion) {
	for id, said := range heard {
		places := said.Report[Subject{Redirect: r.Number}]
		node := nodes[id]
		switch {
		case len(places) == 0, node == nil && !r.Outside, node != nil && !r.EffectiveOn(id):
			continue
		}
		out = append(out, ofNow(places, said.Of, node, r.Since))
	}
	return out
}

// ofNow is what a node says, as of a revision, of probes that are as they are since then. What it said before is of others: it probes, and does not
// know. Where it does not tell of which revision that is, it is what it has acknowledged at least; of a host outside the cluster, whose node is nil,
// nobody knows that.
func ofNow(places map[fsm.Probed]Opinion, of fsm.Revision, node *fsm.Node, since fsm.Revision) map[fsm.Probed]Opinion {
	if of.IsZero() {
		if node == nil {
			return places
		}
		of = node.Acknowledged
	}
	if !of.Before(since) {
		return places
	}
	out := map[fsm.Probed]Opinion{}
	for at := range places {
		out[at] = Unknown
	}
	return out
}

// silentFor is how many of the silent nodes may probe for a policy.
func silentFor(r *fsm.Policy, silent []*fsm.Node) (n uint32) {
	for _, node := range silent {
		if r.EffectiveOn(node.ID) {
			n++
		}
	}
	return n
}

// judge gives the verdicts on probed places: those that more than half agree on, else those of before while anybody may probe.
func judge(probed []fsm.Probed, was []fsm.ProbeVerdict, reports []map[fsm.Probed]Opinion, silent uint32) (out []fsm.ProbeVerdict) {
	before := map[fsm.Probed]fsm.ProbeVerdict{}
	for _, v := range was {
		before[fsm.Probed{Address: v.Address, Port: v.Port}] = v
	}
	for _, at := range probed {
		count := map[Opinion]uint32{}
		of := silent
		for _, places := range reports {
			if o, probes := places[at]; probes {
				count[o]++
				of++
			}
		}
		verdict, had := before[at]
		for _, o := range []Opinion{Good, Bad} {
			if 2*count[o] > of && (!had || verdict.Healthy != (o == Good)) {
				verdict, had = fsm.ProbeVerdict{Address: at.Address, Port: at.Port, Healthy: o == Good, Say: count[o], Of: of}, true
			}
		}
		if had && of > 0 {
			out = append(out, verdict)
		}
	}
	return out
}
