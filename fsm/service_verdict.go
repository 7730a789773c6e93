// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"slices"
)

// JudgeService says what most of the nodes that probe the endpoints of a Service think of them: all of it, in place of what was said
// before. What is said of others than its endpoints is left out. What becomes of those that are bad is the leader's plan. From format 2 on.
type JudgeService struct {
	ID       ServiceID      `pb:"1"`
	UID      string         `pb:"2"`
	Verdicts []ProbeVerdict `pb:"3"`
}

// Kind is KindJudgeService.
func (*JudgeService) Kind() Kind { return KindJudgeService }

// formatServiceProbes is the first format that knows probes of endpoints.
const formatServiceProbes uint32 = 2

func (c *JudgeService) apply(tx *txn) Outcome {
	subject := "service " + string(c.ID)
	if out, old := tx.formatBelow(formatServiceProbes, subject); old {
		return out
	}
	s, ok := find[*Service](tx.rows, TableServices, string(c.ID))
	if !ok {
		return refuse(RejectNotFound, subject, "", "")
	}
	if s.UID != c.UID {
		return refuse(RejectStaleRevision, subject, s.UID, c.UID)
	}
	next, rare := *s, s.Besides()
	if tx.judge(&rare.Verdicts, &next.History, c.Verdicts, s.Probed()) {
		next.SetRare(rare)
		tx.put(&next)
	}
	return tx.ok()
}

// Probed lists the endpoints that nodes form an opinion of, in order, each once; none without a probe, and no endpoint that is not ready
// for another reason.
func (s *Service) Probed() (out []Probed) {
	if !s.Probe().Wanted() || s.Deleting {
		return nil
	}
	for _, e := range s.Endpoints {
		if e.Ready || e.Failing {
			out = append(out, Probed{Address: e.Address})
		}
	}
	slices.SortStableFunc(out, Probed.compare)
	return slices.Compact(out)
}

// VerdictsFor are what of the verdicts of a Service goes for what it becomes: those on endpoints of which the same is asked.
func (s *Service) VerdictsFor(next *Service) []ProbeVerdict {
	if s.UID != next.UID || !s.Probe().Equal(next.Probe()) || len(s.Verdicts()) == 0 {
		return nil
	}
	before, after := s.asked(), next.asked()
	return verdictsAt(s.Verdicts(), slices.DeleteFunc(next.Probed(), func(p Probed) bool {
		return !slices.Equal(before[p.Address], after[p.Address])
	}))
}

// probedAlike tells whether what nodes say of a Service may be of what it becomes: where endpoints are that it had before, the same is asked of them.
// Of those that come to it nobody says anything before he probes them.
func (s *Service) probedAlike(next *Service) bool {
	if s.UID != next.UID || !s.Probe().Equal(next.Probe()) {
		return false
	}
	after := next.asked()
	for address, ports := range s.asked() {
		if now, stays := after[address]; stays && !slices.Equal(ports, now) {
			return false
		}
	}
	return true
}

// asked are the ports where endpoints may be asked, by address; none where the probe names its own.
func (s *Service) asked() map[netip.Addr][]Port {
	out, each := map[netip.Addr][]Port{}, s.Probe().Port == 0
	for _, e := range s.Endpoints {
		ports := out[e.Address]
		if each {
			for _, p := range e.Ports() {
				ports = append(ports, p.Port)
			}
		}
		out[e.Address] = ports
	}
	return out
}
