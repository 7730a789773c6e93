// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"slices"
	"time"

	"fairlead.io/fairlead/cluster/leader/balancers"
	"fairlead.io/fairlead/fsm/world"
)

// Status is what the leader is about, for people. It is the zero Status on a member that does not lead.
type Status struct {
	Term uint64 `json:"term"`
	// Planned is when the newest plan was made, and Proposed how many commands it proposed.
	Planned  time.Time      `json:"planned"`
	Proposed int            `json:"proposed"`
	Sources  []SourceStatus `json:"sources"`
	// Waiting tells what is not as the sources ask for, and why.
	Waiting []Explanation `json:"waiting"`
}

// OutsideStatus is what became of the newest plan of outside load balancers.
type OutsideStatus struct {
	Waiting []Explanation
	// Counts are the numbers in the status of groups and Binds, by owner.
	Counts map[string]balancers.Counts
}

// SourceStatus is what the newest view of a source is worth.
type SourceStatus struct {
	Name string `json:"name"`
	// Usable says that the view is acted on; if it is not, Why tells the reason.
	Usable   bool          `json:"usable"`
	Why      string        `json:"why,omitempty"`
	Complete bool          `json:"complete"`
	Age      time.Duration `json:"age"`
	// Older says that the view is older than what was seen before: it lags, or the cluster ran back.
	Older    bool            `json:"older"`
	Problems []world.Problem `json:"problems"`
}

// Status tells what the leader is about. What it refers to must not be changed.
func (l *Leader) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Waiting = slices.Concat(s.Waiting, l.outside.Waiting, l.waiting, l.unfit.all())
	return s
}

// Unfit tells what no log entry can hold of the newest plans; none on a member that does not lead.
func (l *Leader) Unfit() []Explanation { return l.unfit.all() }

// Outside tells of outside load balancers; the zero OutsideStatus on a member that does not lead. What it refers to
// must not be changed.
func (l *Leader) Outside() OutsideStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outside
}

// Queued is how many calls wait because their driver has as many as it takes already.
func (l *Leader) Queued() int { return int(l.queued.Load()) }

func (l *Leader) setOutside(s OutsideStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outside = s
}

// setPolicies keeps what waits of policies of client-side balancing.
func (l *Leader) setPolicies(waiting []Explanation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = waiting
}

func (l *Leader) setStatus(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

// report keeps what a plan found out.
func (p *planning) report(worlds []world.World, verdicts []Verdict, out *Result) {
	sources := make([]SourceStatus, len(worlds))
	for i := range worlds {
		v := &verdicts[i]
		sources[i] = SourceStatus{
			Name: p.c.Sources[i].Name, Usable: v.Act, Why: v.Why, Complete: worlds[i].Complete, Age: worlds[i].Age,
			Older: v.Older, Problems: worlds[i].Problems,
		}
		p.metrics.judged(sources[i].Name, v)
	}
	p.setStatus(func(s *Status) {
		s.Planned, s.Proposed = p.c.Clock.Wall(), len(out.Urgent)+len(out.Bulk)
		s.Sources, s.Waiting = sources, out.Waiting
	})
}
