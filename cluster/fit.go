// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"fairlead.io/fairlead/fsm"
)

// fitting has those of the proposals proposed that an entry can hold, and gives the outcomes of all. What one object asks for shall not keep
// from the log what is proposed together with it, and nothing unfit goes to another member.
func (n *Node) fitting(u Urgency, proposals []Proposal, propose func(fit []Proposal, bytes int) ([]Outcome, error)) ([]Outcome, error) {
	if len(proposals) > MaxProposals {
		return nil, fmt.Errorf("propose: %d commands at once, at most %d are allowed", len(proposals), MaxProposals)
	}
	s := n.sift(u, proposals)
	if s.bytes > fsm.MaxEntry {
		return nil, fmt.Errorf("propose: %d commands of %d bytes: %w", len(s.fit), s.bytes, fsm.ErrTooLarge)
	}
	var outcomes []Outcome
	if len(s.fit) > 0 {
		var err error
		if outcomes, err = propose(s.fit, s.bytes); err != nil {
			return nil, err
		}
	}
	return s.merge(outcomes), nil
}

// sifted is what an entry can hold of some proposals, and what became of the others.
type sifted struct {
	fit   []Proposal
	bytes int // of all that fit
	unfit map[int]Outcome
}

func (n *Node) sift(u Urgency, proposals []Proposal) sifted {
	s := sifted{fit: proposals}
	for i, p := range proposals {
		bytes, err := n.o.Fit(p)
		switch {
		case err == nil && s.unfit == nil:
		case err == nil:
			s.fit = append(s.fit, p)
		case s.unfit == nil: // of the others there is a list of its own from here on
			s.fit, s.unfit = append(make([]Proposal, 0, len(proposals)-1), proposals[:i]...), map[int]Outcome{}
		}
		if err != nil {
			s.unfit[i] = fsm.Unfit(p, err)
			n.metrics.unfit(u)
			continue
		}
		s.bytes += bytes
	}
	return s
}

// merge gives the outcomes of all proposals, in order, of the outcomes of those that fit.
func (s *sifted) merge(outcomes []Outcome) []Outcome {
	if len(s.unfit) == 0 {
		return outcomes
	}
	all := make([]Outcome, len(s.fit)+len(s.unfit))
	for i := range all {
		if o, unfit := s.unfit[i]; unfit {
			all[i] = o
		} else {
			all[i], outcomes = outcomes[0], outcomes[1:]
		}
	}
	return all
}

// encode makes an entry. To encode proposals that fit may still fail in ways that nobody knows of, which end nothing but them.
func (n *Node) encode(proposals []Proposal) (data []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return n.o.Encode(proposals)
}
