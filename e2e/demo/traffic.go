// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"fairlead.io/fairlead/e2e/demo/internal/hops"
	"fairlead.io/fairlead/e2e/demo/internal/load"
)

// The load (docs/demo.md): the time-out is under TCP's first retransmission, so that no request has a second try.
const (
	requestEvery   = 10 * time.Millisecond
	requestTimeout = 900 * time.Millisecond
)

func generator() load.Generator {
	g := load.Generator{Every: requestEvery, Timeout: requestTimeout, Enter: clientNet.Enter}
	for c := range clientCount {
		g.Sources = append(g.Sources, clientAddress(c))
	}
	for _, s := range services {
		g.Targets = append(g.Targets, load.Target{
			Name: s.name, Address: netip.AddrPortFrom(s.address, webPort),
			Check: func(body string) (string, error) { return checkAnswer(s.name, body) },
		})
	}
	return g
}

// counted is what became of the requests of a while.
type counted struct {
	load.Tally
	dropped int
	took    time.Duration
}

// under has clients ask while f runs.
func under(ctx context.Context, f func(context.Context) error) (counted, error) {
	watcher, err := hops.Watch(switchNet.Enter, webPort, func(name string) bool { return strings.HasPrefix(name, "n") })
	if err != nil {
		return counted{}, err
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var out load.Outcome
	var failure error
	begin := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g := generator()
		out, failure = g.Run(asking)
	}()
	err = f(ctx)
	took := time.Since(begin)
	stop()
	<-ended
	err = errors.Join(err, failure, watcher.Close())
	tally := load.Count(out.Requests, func(r load.Request) string {
		if hop := watcher.Hop(r.Source); hop != "" {
			return hop
		}
		return load.Nowhere
	})
	return counted{tally, out.Dropped, took}, err
}

// answered tells whether every node that should answer does, and nothing fails.
func (w *world) answered(ctx context.Context) error {
	const glance = 300 * time.Millisecond
	got, err := under(ctx, func(ctx context.Context) error { return during(ctx, glance) })
	if err != nil {
		return err
	}
	for _, s := range services {
		for _, a := range w.wantedHops(s) {
			if got.Hops[hopName(a)].Requests == 0 {
				return fmt.Errorf("nothing was sent to %s", hopName(a))
			}
		}
	}
	if got.Failed > 0 {
		r := newStepReport("", got.Tally)
		return fmt.Errorf("%d of %d requests failed: %s", got.Failed, got.Requests, r.remarks())
	}
	return nil
}
