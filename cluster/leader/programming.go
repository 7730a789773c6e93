// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/world"
)

// programming measures how long a change of endpoints takes from its cause, as EndpointSlices state it, to its commit and to
// the nodes that carried it out (K52). The record knows nothing of it: it is about what this leader committed in this term.
type programming struct {
	commits prometheus.Histogram
	nodes   prometheus.Histogram

	mu      sync.Mutex
	causes  map[fsm.ServiceID]time.Time // of what is being proposed
	changes []change                    // in order of commit
	marks   map[fsm.NodeID]fsm.AppliedMark
}

// change is one that is on its way to nodes.
type change struct {
	at    fsm.Revision
	cause time.Time
}

// maxChanges bounds what is on its way: a storm of more is measured in part.
const maxChanges = 1024

func newProgramming() *programming {
	return &programming{
		commits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "fairlead_leader_endpoints_commit_seconds",
			Help:    "From the change of a pod, as its EndpointSlice states it, to the commit of its endpoints.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
		}),
		nodes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "fairlead_leader_endpoints_programmed_seconds",
			Help:    "From the change of a pod, as its EndpointSlice states it, to each node that says that it carried it out.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 14),
		}),
		marks: map[fsm.NodeID]fsm.AppliedMark{},
	}
}

// begin forgets what was of another term: other leaders heard of nodes meanwhile.
func (p *programming) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.causes, p.changes = nil, nil
	clear(p.marks)
}

// expect takes in what caused the changes of Services that are proposed next.
func (p *programming) expect(causes map[fsm.ServiceID]time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.causes = causes
}

// committed measures a command that was committed, and has it wait for nodes.
func (p *programming) committed(c fsm.Command, at fsm.Revision, now time.Time) {
	put, ok := c.(*fsm.PutService)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	cause, ok := p.causes[put.Service.ID]
	delete(p.causes, put.Service.ID)
	if !ok || now.Before(cause) {
		return // clocks disagree
	}
	p.commits.Observe(now.Sub(cause).Seconds())
	if p.changes = append(p.changes, change{at, cause}); len(p.changes) > maxChanges {
		p.changes = slices.Delete(p.changes, 0, len(p.changes)-maxChanges)
	}
}

// acknowledged measures what a node carried out since it was heard of last. What it says first after a boot, or to a new
// leader, is no measure: nobody knows since when that is so.
func (p *programming) acknowledged(mark fsm.AppliedMark, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.marks[mark.Node]
	if known && last.Boot == mark.Boot && !last.Upto.Before(mark.Upto) {
		return
	}
	p.marks[mark.Node] = mark
	if !known || last.Boot != mark.Boot {
		return
	}
	for _, c := range p.changes {
		if last.Upto.Before(c.at) && !mark.Upto.Before(c.at) && !now.Before(c.cause) {
			p.nodes.Observe(now.Sub(c.cause).Seconds())
		}
	}
}

// causesOf finds what caused the Services of proposals to change: of each the earliest cause among its slices that were
// written since the record acted on any. Sources without versions tell nothing.
func (s *sentry) causesOf(worlds []world.World, record *fsm.View, proposals []fsm.Proposal) map[fsm.ServiceID]time.Time {
	out := map[fsm.ServiceID]time.Time{}
	for _, p := range proposals {
		put, ok := p.Command.(*fsm.PutService)
		if !ok {
			continue
		}
		id := put.Service.ID
		for i := range worlds {
			acted := uint64(0)
			if seen, ok := fsm.Get[*fsm.SourceView](record, fsm.TableViews, s.sources[i].Name); ok {
				acted = seen.Version(string(world.KindEndpointSlice))
			}
			for _, slice := range worlds[i].SlicesOf(idOf(id)) {
				cause := time.UnixMilli(slice.ChangedUnixMilli)
				if first, ok := out[id]; slice.Version > acted && slice.ChangedUnixMilli != 0 && (!ok || cause.Before(first)) {
					out[id] = cause
				}
			}
		}
	}
	return out
}
