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
const patience = 60 * time.Second

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

// during goes on for a while.
func during(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
