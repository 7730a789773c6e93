// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// sentry watches the sources for the plan of one part, and has their guards judge what is seen, for one term: what
// guards saw in an earlier term is forgotten with it.
type sentry struct {
	*Leader
	part    Part
	sources []NamedSource
	guards  []*Guard
	origins origins
	wake    chan struct{}

	news   atomic.Uint64 // counts tokens of the sources
	judged judged
	// outside are the objects of PartOutside.
	outside outsideObjects
	buried  buried
	held    map[fsm.HoldID]bool // holds of which the log was told
}

func newSentry(l *Leader, part Part) *sentry {
	s := &sentry{Leader: l, part: part, sources: part.sources(l.c.Sources), wake: make(chan struct{}, 1)}
	for range s.sources {
		s.guards = append(s.guards, NewGuard(l.c.Limits))
	}
	return s
}

// propose commits proposals of the part.
func (s *sentry) propose(ctx context.Context, u Urgency, proposals []fsm.Proposal) (refused int, err error) {
	return s.Leader.propose(ctx, u, s.part, proposals)
}

// forward passes the tokens of all sources on to those who watch them, until ctx ends.
func (l *Leader) forward(ctx context.Context, to ...*sentry) {
	var sources sync.WaitGroup
	defer sources.Wait()
	for _, source := range l.c.Sources {
		from := source.Changed()
		sources.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-from:
					for _, s := range to {
						s.news.Add(1)
						poke(s.wake)
					}
				}
			}
		})
	}
}

// judged is what the guards said last.
type judged struct {
	worlds   []world.World
	verdicts []Verdict
	news     uint64
	until    time.Duration
	record   *fsm.View
	// acted is what the record said of each source, nil for nothing.
	acted []*fsm.SourceView
}

// judgeAgain is how long a verdict holds while the sources are silent and only the record changes. What a guard lets
// go stays let go, and what the record gained since is not among it.
const judgeAgain = 250 * time.Millisecond

// judge asks each source's guard what its view is worth.
func (s *sentry) judge(now time.Duration, record *fsm.View) ([]world.World, []Verdict) {
	news := s.news.Load()
	if s.judged.verdicts != nil && news == s.judged.news && now < s.judged.until && !s.rewound(record) {
		return s.judged.worlds, s.judged.verdicts
	}
	until := judgeAgain
	worlds := s.worlds()
	if s.still(worlds, record) {
		s.judged.worlds, s.judged.news, s.judged.until = worlds, news, now+until
		return worlds, s.judged.verdicts
	}
	s.origins.see(worlds)
	verdicts := make([]Verdict, len(worlds))
	objects := s.objects(record)
	for i, source := range s.sources {
		known := s.origins.known(i, knownOf(record, source.Name, s.part, objects))
		verdicts[i] = s.guards[i].Judge(now, &worlds[i], &known)
		if r, ok := source.Source.(Relister); ok {
			ask(r, &verdicts[i])
		}
		sooner(&until, verdicts[i].Again)
	}
	s.judged = judged{worlds: worlds, verdicts: verdicts, news: news, until: now + until, record: record, acted: s.acted(record)}
	return worlds, verdicts
}

// ask asks a source for the lists that would settle something.
func ask(r Relister, v *Verdict) {
	if v.Anew {
		r.Begin()
	}
	if len(v.Relist) > 0 {
		r.Relist(v.Relist...)
	}
}

// acted is what the record says of each source.
func (s *sentry) acted(record *fsm.View) []*fsm.SourceView {
	out := make([]*fsm.SourceView, len(s.sources))
	for i, source := range s.sources {
		out[i], _ = fsm.Get[*fsm.SourceView](record, fsm.TableViews, source.Name)
	}
	return out
}

// rewound tells whether an operator has accepted since the last verdicts that a source was set back, and perhaps another part acted on that:
// these verdicts are of before, however new.
func (s *sentry) rewound(record *fsm.View) bool {
	for i, now := range s.acted(record) {
		was := s.judged.acted[i]
		if now == was || was == nil || now == nil { // nothing was acted on before
			continue
		}
		less := func(k fsm.KindVersion) bool { return now.Version(k.Kind) < k.Version }
		if now.Rewind && !was.Rewind || slices.ContainsFunc(was.Versions, less) {
			return true
		}
	}
	return false
}

// objects are those that the record holds.
func (s *sentry) objects(record *fsm.View) []KnownObject {
	switch s.part {
	case PartOutside:
		return s.outside.follow(record)
	case PartPolicies:
		return policiesOf(record)
	}
	return servicesOf(record)
}

// worlds are what the sources show now of what the part is planned from. Of the other part there is nothing in them:
// pods that come and go would have all Services planned in full each time, past the lane, for nothing.
func (s *sentry) worlds() []world.World {
	record := s.c.Record.Read()
	s.buried.follow(record)
	worlds := make([]world.World, len(s.sources))
	for i, source := range s.sources {
		w := source.World()
		worlds[i] = s.part.View(w)
		worlds[i].Source = source.Name
		s.withoutBuried(i, &worlds[i], w.Vouched, record)
		if seen, ok := fsm.Get[*fsm.SourceView](record, fsm.TableViews, source.Name); ok {
			s.guards[i].See(&worlds[i], seen.Cluster)
		}
	}
	return worlds
}

// holds are the mass changes to put before an operator, and those that are over for every source, as far as the
// record does not say so already.
func (s *sentry) holds(record *fsm.View, worlds []world.World, verdicts []Verdict) []fsm.Proposal {
	var out []fsm.Proposal
	propose := func(reason string, c fsm.Command) {
		out = append(out, fsm.Proposal{Actor: actor, Reason: reason, AtUnixMilli: s.c.Clock.Wall().UnixMilli(), Command: c})
	}
	held, lifted := map[string]bool{}, map[string]int{}
	for _, h := range fsm.List[*fsm.Hold](record, fsm.TableHolds) {
		held[string(h.ID)] = true
		s.tellHold(h)
	}
	known := maps.Clone(held)
	for i := range verdicts {
		for _, h := range verdicts[i].Hold {
			if !held[h.ID] {
				held[h.ID] = true
				propose("too many absences at once", &fsm.PutHold{ID: fsm.HoldID(h.ID), Of: string(h.Kind), Subjects: h.Subjects, Why: h.Why})
			}
		}
		for _, id := range verdicts[i].Lift {
			lifted[id]++
		}
		reason, commands := s.rewinds(record, worlds[i].Source, &verdicts[i])
		for _, c := range commands {
			propose(reason, c)
		}
	}
	for _, id := range sortedKeys(lifted) {
		if known[id] && lifted[id] == len(verdicts) {
			propose("no longer asked for", &fsm.DeleteHold{ID: fsm.HoldID(id)})
		}
	}
	return out
}

// tellHold tells the log, once in a term, of a hold of the part that waits for an operator.
func (s *sentry) tellHold(h *fsm.Hold) {
	source := h.Of == fsm.OfSource
	if h.Released || s.held[h.ID] || !s.part.holds(h.ID) || !source && !slices.Contains(s.part.kinds(), world.Kind(h.Of)) {
		return // that of silent nodes is told of by who put it there
	}
	if s.held == nil {
		s.held = map[fsm.HoldID]bool{}
	}
	s.held[h.ID] = true
	if source {
		s.c.Log.Warn("source ran back", "source", h.Subjects[0], "reason", h.Why,
			"remedy", "if it was restored from a backup: fairlead accept-rewind "+h.Subjects[0]+" --reason TEXT; if not, look after its API server: what has changed there since does not count")
		return
	}
	s.c.Log.Warn("removals held", "hold", string(h.ID), "kind", h.Of, "objects", len(h.Subjects), "reason", h.Why,
		"remedy", "if they are meant to go: fairlead holds release "+string(h.ID)+" --reason TEXT; if not, look after the source; the hold ends when they are back")
}
