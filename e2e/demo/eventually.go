// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fairlead.io/fairlead/e2e/demo/internal/sandbox"
)

// patience is how long anything may take; much longer than it should on a busy machine.
const patience = 2 * time.Minute

// errEnded is the end of a process that should run.
var errEnded = errors.New("it ended")

// ended tells of a process that should run, with its last words.
func ended(p *sandbox.Process) error {
	return fmt.Errorf("%s: %w: %s", p.Name, errEnded, p.LastWords())
}

// eventually waits for a condition, and gives its last word if it does not come.
func eventually(ctx context.Context, what string, condition func() error) error {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		if errors.Is(err, errEnded) {
			return err // it will not come any more
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline.C:
			return fmt.Errorf("no %s within %s: %w", what, patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// during goes on for a while: if clients are patient (Options.Patient), until they also have got answers to a quarter of
// the requests that they make in that time where nothing else keeps the machine busy.
func (w *world) during(ctx context.Context, d time.Duration) error {
	enough := w.ended.Load()
	if w.o.Patient {
		enough += int64(d / requestEvery * clientCount / 4)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
	}
	return eventually(ctx, "answers to clients", func() error {
		if lack := enough - w.ended.Load(); lack > 0 {
			return fmt.Errorf("%d are missing", lack)
		}
		return nil
	})
}
