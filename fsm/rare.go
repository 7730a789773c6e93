// SPDX-License-Identifier: Apache-2.0

package fsm

import (
	"net/netip"
	"time"
)

// Rare is what few Services have, so that the others have no room for it. Nobody writes to one that a record has.
type Rare struct {
	Requested []netip.Addr `pb:"4" json:"requested"`
	// External are the addresses of spec.externalIPs, which need no pool.
	External   []netip.Addr `pb:"5" json:"external"`
	SharingKey string       `pb:"10" json:"sharingKey,omitempty" max:"4096"`
	// Affinity is for how long a client keeps its endpoint; zero for not at all. From format 2 on.
	Affinity time.Duration `pb:"15" json:"affinity"`
	// SourceRanges are the only clients that may use the addresses; none means all. From format 2 on.
	SourceRanges []netip.Prefix `pb:"16" json:"sourceRanges"`
	// Scheduler is how nodes choose among endpoints, one of package world's; empty is by chance. From format 2 on.
	Scheduler string `pb:"17" json:"scheduler,omitempty"`
	// Advertisements are those that choose it by its labels, in order. From format 2 on.
	Advertisements []AdvertisementName `pb:"19" json:"advertisements,omitempty"`
	// ByOthers are the addresses that other controllers gave it, by status.loadBalancer, where nodes take connections to those: nobody
	// announces them, and they are in no allocation. From format 2 on.
	ByOthers []netip.Addr `pb:"24" json:"byOthers,omitempty"`
	// Probe is how nodes find out which endpoints answer; zero for not at all. From format 2 on.
	Probe Probe `pb:"25" json:"probe,omitzero"`
	// Verdicts are what most nodes that probe think of endpoints, as of when that changed last; without a port. They are set by
	// JudgeService, and kept by Apply.
	Verdicts []ProbeVerdict `pb:"26" json:"verdicts,omitempty"`
	// ProbedSince is when its probe, or where it is asked at an endpoint, last changed; zero without a probe. Apply gives it. What a node says
	// that has not acknowledged this may be of what was probed before. From format 2 on.
	ProbedSince Revision `pb:"27" json:"probedSince,omitzero"`
}

// noRare is that of Services that have nothing of it.
var noRare Rare //nolint:gochecknoglobals // for reading

// rare is for reading.
func (s *Service) rare() *Rare {
	if s.Rare == nil {
		return &noRare
	}
	return s.Rare
}

// Besides gives a copy of what few Services have, for SetRare.
func (s *Service) Besides() Rare { return *s.rare() }

// SetRare gives a Service a copy of r, or nothing where nothing is in it. That of the record that it is a copy of stays as it was.
func (s *Service) SetRare(r Rare) {
	if s.Rare = nil; r.empty() {
		return
	}
	kept := r
	s.Rare = &kept
}

func (r *Rare) empty() bool {
	return len(r.Requested)+len(r.External)+len(r.SourceRanges)+len(r.Advertisements)+len(r.ByOthers)+len(r.Verdicts) == 0 &&
		r.SharingKey == "" && r.Affinity == 0 && r.Scheduler == "" && r.Probe.Equal(noRare.Probe) && r.ProbedSince.IsZero()
}

// Requested are the addresses that it asks for.
func (s *Service) Requested() []netip.Addr { return s.rare().Requested }

// External is Rare.External.
func (s *Service) External() []netip.Addr { return s.rare().External }

// SharingKey lets Services that have the same share an address; empty shares with nobody.
func (s *Service) SharingKey() string { return s.rare().SharingKey }

// Affinity is Rare.Affinity.
func (s *Service) Affinity() time.Duration { return s.rare().Affinity }

// SourceRanges is Rare.SourceRanges.
func (s *Service) SourceRanges() []netip.Prefix { return s.rare().SourceRanges }

// Scheduler is Rare.Scheduler.
func (s *Service) Scheduler() string { return s.rare().Scheduler }

// Advertisements is Rare.Advertisements.
func (s *Service) Advertisements() []AdvertisementName { return s.rare().Advertisements }

// ByOthers is Rare.ByOthers.
func (s *Service) ByOthers() []netip.Addr { return s.rare().ByOthers }

// Probe is Rare.Probe.
func (s *Service) Probe() Probe { return s.rare().Probe }

// Verdicts is Rare.Verdicts.
func (s *Service) Verdicts() []ProbeVerdict { return s.rare().Verdicts }

// ProbedSince is Rare.ProbedSince.
func (s *Service) ProbedSince() Revision { return s.rare().ProbedSince }
