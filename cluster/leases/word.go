// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"fairlead.io/fairlead/fsm"
)

// holdPrefix begins the ids of holds of addresses that a silent node keeps.
const holdPrefix = "l2-"

func holdOf(node fsm.NodeID) fsm.HoldID { return fsm.HoldID(holdPrefix + string(node)) }

// word tells whether an operator gave the word that a node does not answer for an address any more. It was true when it was
// given, and stays so: until the hold is over, the node is neither told of that address nor given it anew.
func (p *policy) word(node fsm.NodeID, vip netip.Addr) bool {
	of := p.words[node]
	return len(of) > 0 && slices.Contains(of, vip.String())
}

// words are what operators vouch for.
func words(v *fsm.View) (out map[fsm.NodeID][]string) {
	for _, h := range fsm.List[*fsm.Hold](v, fsm.TableHolds) {
		if node, ours := strings.CutPrefix(string(h.ID), holdPrefix); ours && h.Released {
			if out == nil {
				out = map[fsm.NodeID][]string{}
			}
			out[fsm.NodeID(node)] = h.Subjects
		}
	}
	return out
}

// released tells whether a lease that its holder keeps is to end by an operator's word.
func (p *policy) released(l *fsm.Lease) bool { return l.Keep && p.word(l.Holder, l.VIP) }

// holds puts before an operator what silent nodes keep, and takes back what is over.
func (s *sitting) holds() {
	for _, h := range fsm.List[*fsm.Hold](s.v, fsm.TableHolds) {
		node, ours := strings.CutPrefix(string(h.ID), holdPrefix)
		if ours && len(s.kept[fsm.NodeID(node)]) == 0 && s.now >= s.began+wait(Longest) {
			s.steps = append(s.steps, Step{Commands: []fsm.Command{&fsm.DeleteHold{ID: h.ID}}, Why: "nothing waits for it any more"})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(s.kept)) {
		subjects := s.kept[node]
		slices.Sort(subjects)
		h, ok := fsm.Get[*fsm.Hold](s.v, fsm.TableHolds, string(holdOf(node)))
		if ok && (slices.Equal(h.Subjects, subjects) || h.Released && !slices.ContainsFunc(subjects, func(vip string) bool { return !slices.Contains(h.Subjects, vip) })) {
			continue // the word is asked for, or was given and is not carried out yet
		}
		s.steps = append(s.steps, Step{
			Commands: []fsm.Command{&fsm.PutHold{
				ID: holdOf(node), Of: "Lease", Subjects: subjects,
				Why: fmt.Sprintf("node %s keeps on answering for these addresses and is out of touch; release this once it surely does not answer any more", node),
			}},
			Why: "its node is out of touch and keeps them",
		})
	}
}
