// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"log/slog"
	"time"

	"fairlead.io/fairlead/cmd/internal/config"
)

// rereadEvery is how often the configuration is looked at for another limit. A kubelet itself takes a minute or so to show a changed ConfigMap.
const rereadEvery = 2 * time.Second

// limit is how many calls a second local redirection takes at a place. It follows the configuration while the agent runs (balancing §11); nothing
// else of that does.
type limit struct {
	now    uint32
	reread func() (config.Agent, error)
	set    func(uint32) error
	log    *slog.Logger
	fault  string // that was told last; empty for none
}

// run follows the configuration until ctx ends, and returns its error.
func (l *limit) run(ctx context.Context) error {
	ticks := time.NewTicker(rereadEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
			l.look()
		}
	}
}

// look reads the configuration once. One that cannot be used changes nothing, and is told once.
func (l *limit) look() {
	c, err := l.reread()
	if err == nil && c.Sock != nil && uint32(c.Sock.RedirectLimit) != l.now {
		next := uint32(c.Sock.RedirectLimit)
		if err = l.set(next); err == nil {
			l.log.Info("limit of local redirection changed", "from", l.now, "to", next)
			l.now = next
		}
	}
	switch {
	case err == nil:
		l.fault = ""
	case err.Error() != l.fault:
		l.fault = err.Error()
		l.log.Error("configuration not read anew: the limit of local redirection stays", "limit", l.now, "err", err)
	}
}
