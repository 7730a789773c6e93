// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"fairlead.io/fairlead/fsm"
)

// Group commits proposals in order, in one entry.
type Group interface {
	Propose(ctx context.Context, proposals []fsm.Proposal) ([]fsm.Outcome, error)
}

// Clock is the time that a Watcher lives by.
type Clock interface {
	After(d time.Duration) <-chan time.Time
	Wall() time.Time // stamped on proposals, never compared
}

// Options of a Watcher. Fields without "optional" are required.
type Options struct {
	Record fsm.Reader
	Group  Group
	Clock  Clock
	Heard  func() Heard // what this member hears now
	Log    *slog.Logger
	Every  time.Duration // between two looks; optional. Default 1 s
}

// Watcher has verdicts committed while this member leads.
type Watcher struct {
	o        Options
	services judged
}

// New makes a Watcher that does nothing yet.
func New(o Options) *Watcher {
	o.Every = cmp.Or(o.Every, time.Second)
	return &Watcher{o: o}
}

// maxTogether bounds the commands of an entry.
const maxTogether = 256

// Run judges for one term, until ctx ends.
func (w *Watcher) Run(ctx context.Context, _ uint64) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.o.Clock.After(w.o.Every):
		}
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			w.o.Log.Warn("verdicts on probed addresses not committed", "err", err)
		}
	}
}

// look proposes what has changed.
func (w *Watcher) look(ctx context.Context) error {
	record := w.o.Record.Read()
	judged := Judge(record, w.services.in(record), w.o.Heard())
	var proposals []fsm.Proposal
	for _, c := range judged[:min(len(judged), maxTogether)] { // the others by the next look
		proposals = append(proposals, fsm.Proposal{Actor: "leader", Reason: "nodes probed", AtUnixMilli: w.o.Clock.Wall().UnixMilli(), Command: c})
	}
	if len(proposals) == 0 {
		return nil
	}
	outcomes, err := w.o.Group.Propose(ctx, proposals)
	for i, o := range outcomes {
		if err := o.Err(); err != nil { // what it is about went, or changed, meanwhile
			w.o.Log.Debug("verdict refused", "of", subjectOf(judged[i]), "err", err)
		}
	}
	return err
}

func subjectOf(c fsm.Command) string {
	switch c := c.(type) {
	case *fsm.SetPolicyHealth:
		return string(c.ID)
	case *fsm.JudgeService:
		return string(c.ID)
	}
	return ""
}
