// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// Options is what a Driver is made of. All fields are required, but for Drain.
type Options struct {
	Runtime Runtime
	Book    *Book
	Mark    Mark
	// Drain is how long a server that is deregistered keeps the connections that it has; then they are shut.
	Drain time.Duration
	Log   *slog.Logger
}

// Driver is a kit.Driver of one HAProxy. A load balancer is a backend of HAProxy's configuration: it is found, never made
// or deleted. Whether HAProxy takes servers at run time is for it to say: `balance` has to be dynamic.
type Driver struct {
	o Options
	// turn is held by whoever changes HAProxy: one look, the commands that follow from it, and the look whether they
	// did it belong together.
	turn chan struct{}
	late *attempts        // of whoever has the turn
	seen map[string]sight // of whoever has the turn: the newest look at each backend

	waitingMu sync.Mutex
	waiting   []*job // in the order in which they came

	healthMu sync.Mutex
	sick     string // why it is not healthy, empty if it is
}

// New makes a driver. Keep has to run beside it.
func New(o Options) *Driver {
	return &Driver{o: o, turn: make(chan struct{}, 1), late: newAttempts(rememberedAttempts), seen: map[string]sight{}}
}

// enter waits for the turn and gives what ends it. Errors: the caller stopped waiting, so nothing is done for it any more.
func (d *Driver) enter(ctx context.Context) (leave func(), err error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil { // select takes either
		<-d.turn
		return nil, err
	}
	return func() { <-d.turn }, nil
}

// refusal is why nothing was done, and nothing will be.
type refusal struct{ error }

// answer is what the caller hears. Errors: what happened is not known.
func answer(err error) (webhook.Answer, error) {
	var no *refusal
	switch {
	case err == nil:
		return webhook.Answer{Status: webhook.Succ}, nil
	case errors.As(err, &no):
		return webhook.Answer{Status: webhook.Fail, Msg: no.Error()}, nil
	default:
		return webhook.Answer{}, err
	}
}

// verdict is what a user hears about what they wrote.
func verdict(err error) (webhook.Verdict, error) {
	if err != nil {
		return webhook.Verdict{Msg: err.Error()}, nil
	}
	return webhook.Verdict{Succ: true}, nil
}

// errNoBackend says that HAProxy has no such backend.
var errNoBackend = errors.New("HAProxy has no such backend; add it to its configuration and reload it")

// servers lists the servers of a backend. Errors: errNoBackend, which is certain, or HAProxy cannot be asked.
func (d *Driver) servers(ctx context.Context, backend string) ([]Server, error) {
	text, err := d.o.Runtime.Ask(ctx, "show servers state "+backend)
	if err != nil {
		return nil, err
	}
	words, table := splitState(text)
	if table != "" {
		return parseServers(table)
	}
	// The words differ from release to release. Which backends there are does not.
	text, err = d.o.Runtime.Ask(ctx, "show backend")
	if err != nil {
		return nil, err
	}
	backends, err := parseBackends(text)
	if err == nil && slices.Contains(backends, backend) {
		err = fmt.Errorf("servers of backend %s: HAProxy says %q", backend, words)
	}
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("backend %s: %w", backend, errNoBackend)
}

// tell gives HAProxy commands about a backend. What it said is for people; what counts is which servers there are after.
func (d *Driver) tell(ctx context.Context, backend string, commands []string) (words string, after []Server, err error) {
	text, err := d.o.Runtime.Ask(ctx, strings.Join(append(commands, "show servers state "+backend), "; "))
	if err != nil {
		return "", nil, err
	}
	words, table := splitState(text)
	if table == "" {
		return "", nil, fmt.Errorf("servers of backend %s: HAProxy says %q", backend, words)
	}
	after, err = parseServers(table)
	return words, after, err
}

// find finds our server with an address.
func (d *Driver) find(servers []Server, k key) *Server {
	name := d.o.Mark.name(k.address)
	for i := range servers {
		if servers[i].Backend == k.backend && servers[i].Name == name {
			return &servers[i]
		}
	}
	return nil
}

// Healthy implements kit.Patient: HAProxy answers, and lets this process change it.
func (d *Driver) Healthy(ctx context.Context) bool {
	reason := ""
	level, err := d.o.Runtime.Ask(ctx, "show cli level")
	if err != nil {
		reason = err.Error()
	} else if said(level) != "admin" {
		reason = fmt.Sprintf("the stats socket gives level %q; configure it with `level admin`", said(level))
	}
	d.healthMu.Lock()
	defer d.healthMu.Unlock()
	if reason != d.sick {
		if reason != "" {
			d.o.Log.Warn("not healthy", "err", reason)
		} else {
			d.o.Log.Info("healthy again")
		}
		d.sick = reason
	}
	return reason == ""
}
