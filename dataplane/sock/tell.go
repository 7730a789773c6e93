// SPDX-License-Identifier: Apache-2.0

package sock

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Events is how calls are logged.
type Events struct {
	// Rate is how many of each rule are in a second, by the clock of the events; 0: none are.
	Rate int
	// Origin tells whose a cgroup is, false for one that is not there any more. Nil knows none.
	Origin func(cgroup uint64) (Origin, bool)
}

// told counts what was logged of each rule in the second that runs.
type told struct {
	second time.Time
	of     map[uint32]int
}

// take is whether one more event of a rule is logged.
func (t *told) take(e Event, rate int) bool {
	if second := e.Time.Truncate(time.Second); t.of == nil || !second.Equal(t.second) {
		t.second, t.of = second, map[uint32]int{}
	}
	t.of[e.Rule]++
	return t.of[e.Rule] <= rate
}

// Tell counts an event, and logs it, unless its rule had its share of this second. It is not for use by several at once.
func (s *Sock) Tell(e Event) {
	s.metrics.calls.WithLabelValues(e.Kind.Name(), e.Mode.String(), e.Failure.String()).Inc()
	if !s.told.take(e, s.events.Rate) {
		s.metrics.events.WithLabelValues("skipped").Inc()
		return
	}
	s.metrics.events.WithLabelValues("logged").Inc()
	var from Origin
	known := false
	if s.events.Origin != nil {
		from, known = s.events.Origin(e.Cgroup)
	}
	s.log.Debug(fmt.Sprintf("raw ebpf event: %+v", e))
	r := reportOf(e, s.config.Node, s.nameOf(e.Rule), from, known)
	s.log.LogAttrs(context.Background(), slog.LevelInfo, fmt.Sprintf("formatted ebpf event: %+v", r), r.attrs()...)
}

// nameOf is the name of a rule; empty for one that went meanwhile.
func (s *Sock) nameOf(rule uint32) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byID[rule]
}
