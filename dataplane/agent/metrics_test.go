// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/fsm"
)

// lazy is an Applier that takes its time.
type lazy struct{ Recorder }

func (l *lazy) Apply(ctx context.Context, want desired.State) ([]Failure, error) {
	time.Sleep(20 * time.Millisecond)
	return l.Recorder.Apply(ctx, want)
}

// K52: how far the node is behind what it was told is measured from the first that it was told and had not carried out,
// and a state that is carried out once more is no news.
// Rule: K52.
func TestLagIsMeasured(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{o: Options{Applier: &lazy{}}, log: slog.New(slog.DiscardHandler), metrics: m, done: newMailbox[ack]()}
	state := desired.State{Revision: fsm.Revision{Epoch: 1, Index: 1}}
	a.note(func(s *Status) { s.Told, s.Behind = state.Revision, time.Now().Add(-time.Second) })
	for range 2 {
		a.carryOut(t.Context(), state, false)
	}
	var have dto.Metric
	if err := m.lag.Write(&have); err != nil {
		t.Fatal(err)
	}
	if h := have.GetHistogram(); h.GetSampleCount() != 1 || h.GetSampleSum() < 1.02 {
		t.Errorf("lag of %d states, %f s together; want one of a second and what it took", h.GetSampleCount(), h.GetSampleSum())
	}
}
