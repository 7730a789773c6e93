// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
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

// patientTimeout is when clients give up that do not look at the clock (Options.Patient).
const patientTimeout = time.Minute

func (w *world) generator() load.Generator {
	g := load.Generator{Every: requestEvery, Timeout: requestTimeout, Enter: clientNet.Enter, Ended: &w.ended}
	if w.o.Patient {
		g.Timeout, g.ByPackets = patientTimeout, true
	}
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
	failures []failure
	dropped  int
	took     time.Duration
}

// failure is one request that failed, and where the switch sent it.
type failure struct {
	load.Request
	hop string
}

// under has clients ask while f runs.
func (w *world) under(ctx context.Context, f func(context.Context) error) (counted, error) {
	watcher, err := hops.Watch(switchNet.Enter, lan, webPort)
	if err != nil {
		return counted{}, err
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var out load.Outcome
	var broken error
	begin := time.Now()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g := w.generator()
		out, broken = g.Run(asking)
	}()
	err = f(ctx)
	took := time.Since(begin)
	stop()
	<-ended
	err = errors.Join(err, broken, watcher.Close())
	hop := func(r load.Request) string {
		if neighbor, sent := watcher.Hop(r.Source); sent {
			return ownerOf(neighbor)
		}
		return load.Nowhere
	}
	got := counted{Tally: load.Count(out.Requests, hop), dropped: out.Dropped, took: took}
	for _, r := range out.Requests {
		if r.Failed() {
			got.failures = append(got.failures, failure{r, hop(r)})
		}
	}
	slices.SortFunc(got.failures, func(a, b failure) int { return a.Start.Compare(b.Start) })
	return got, err
}

// record adds the failures to a log, so that they can be laid beside those of the parts.
func (c counted) record(file, during string) error {
	if len(c.failures) == 0 {
		return nil
	}
	var text strings.Builder
	for _, f := range c.failures {
		fmt.Fprintf(&text, "%s %s %s from %s by %s after %s: %v\n", f.Start.UTC().Format(stamp), during, f.Target, f.Source, f.hop,
			f.Took.Round(time.Millisecond), f.Err)
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = out.WriteString(text.String())
	return errors.Join(err, out.Close())
}

// stamp is how the logs of members and agents write a time.
const stamp = "2006-01-02T15:04:05.000000Z"

// answered tells whether every node that should answer does, and nothing fails.
func (w *world) answered(ctx context.Context) error {
	const glance = 300 * time.Millisecond
	got, err := w.under(ctx, func(ctx context.Context) error { return w.during(ctx, glance) })
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
