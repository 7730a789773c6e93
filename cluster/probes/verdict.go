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

// Report is what a node thinks of all places that it probes, by the number of the redirect. Reports are not changed once they are
// handed on.
type Report map[uint32]map[fsm.Probed]Opinion

// Heard are the nodes that this member hears of; a nil Report is of one that probes nothing.
type Heard map[fsm.NodeID]Report

// Judge gives what the record should say of each redirect that it does not say yet, in order.
func Judge(record *fsm.View, heard Heard) (out []*fsm.JudgeRedirect) {
	var silent []*fsm.Node
	for _, n := range fsm.List[*fsm.Node](record, fsm.TableNodes) {
		// A node without an agent probes nothing. Of one that the group says is down the same is known.
		if _, hears := heard[n.ID]; !hears && n.Liveness == fsm.NodeUp && !n.Acknowledged.IsZero() {
			silent = append(silent, n)
		}
	}
	nodes := map[fsm.NodeID]bool{}
	for _, n := range fsm.List[*fsm.Node](record, fsm.TableNodes) {
		nodes[n.ID] = true
	}
	for _, r := range fsm.List[*fsm.Redirect](record, fsm.TableRedirects) {
		if next := judge(r, reportsOf(r, nodes, heard), silentFor(r, silent)); !slices.Equal(next, r.Verdicts) {
			out = append(out, &fsm.JudgeRedirect{ID: r.ID, UID: r.UID, Verdicts: next})
		}
	}
	return out
}

// reportsOf are what hosts where a redirect is effective say of it.
func reportsOf(r *fsm.Redirect, nodes map[fsm.NodeID]bool, heard Heard) (out []map[fsm.Probed]Opinion) {
	for id, report := range heard {
		effective := r.Outside
		if nodes[id] {
			effective = r.EffectiveOn(id)
		}
		if places := report[r.Number]; len(places) > 0 && effective {
			out = append(out, places)
		}
	}
	return out
}

// silentFor is how many of the silent nodes may probe for a redirect.
func silentFor(r *fsm.Redirect, silent []*fsm.Node) (n uint32) {
	for _, node := range silent {
		if r.EffectiveOn(node.ID) {
			n++
		}
	}
	return n
}

// judge gives the verdicts of a redirect: those that more than half agree on, else those of before while anybody may probe.
func judge(r *fsm.Redirect, reports []map[fsm.Probed]Opinion, silent uint32) (out []fsm.ProbeVerdict) {
	before := map[fsm.Probed]fsm.ProbeVerdict{}
	for _, v := range r.Verdicts {
		before[fsm.Probed{Address: v.Address, Port: v.Port}] = v
	}
	for _, at := range r.Probed() {
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
