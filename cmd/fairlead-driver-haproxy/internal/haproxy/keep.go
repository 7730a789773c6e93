// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// How often Keep looks whether HAProxy is another process: until then servers are missing. After a failure it waits twice
// as long each time.
const (
	glance        = 200 * time.Millisecond
	longestGlance = 30 * time.Second
)

// Keep puts back what HAProxy forgot because it was restarted or reloaded, until ctx ends. What somebody took off by hand
// stays off until it is ensured again.
func (d *Driver) Keep(ctx context.Context) {
	wait := glance
	for {
		switch err := d.putBack(ctx); {
		case err == nil || errors.Is(err, ErrUnreachable): // Healthy speaks of the latter
			wait = glance
		case ctx.Err() == nil:
			wait = min(2*wait, longestGlance)
			d.o.Log.Warn("servers are missing in HAProxy", "err", err, "retry_in", wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// putBack makes a process of HAProxy that is not the one of the book have the servers of the book. Errors: some are
// missing still.
func (d *Driver) putBack(ctx context.Context) error {
	text, err := d.o.Runtime.Ask(ctx, "show info")
	if err != nil {
		return err
	}
	process, err := parseInfo(text)
	if err != nil {
		return err
	}
	if d.o.Book.in() == process {
		return nil
	}
	leave, err := d.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	keys, wishes := d.o.Book.wanted()
	var failures []error
	for len(keys) > 0 {
		backend, n := keys[0].backend, 1
		for n < len(keys) && keys[n].backend == backend {
			n++
		}
		if err := d.fill(ctx, backend, keys[:n], wishes); err != nil {
			failures = append(failures, err)
		}
		keys = keys[n:]
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	d.o.Book.moveTo(process)
	if len(wishes) > 0 {
		d.o.Log.Info("servers put back", "process", process.PID, "count", len(wishes))
	}
	return d.o.Book.Save()
}

// fill makes one backend have its servers of the book. A backend that the configuration no longer has gets none: they
// come back with it, since a configuration is read by a new process.
func (d *Driver) fill(ctx context.Context, backend string, keys []key, wishes map[key]wish) error {
	delete(d.seen, backend)
	servers, err := d.servers(ctx, backend)
	if errors.Is(err, errNoBackend) {
		d.o.Log.Warn("backend is gone from HAProxy", "backend", backend, "count", len(keys))
		return nil
	}
	if err != nil {
		return err
	}
	var plan []string
	for _, k := range keys {
		if have := d.find(servers, k); !asWanted(k, wishes[k], have) {
			plan = append(plan, planEnsure(d.o.Mark, k, wishes[k], have)...)
		}
	}
	var words string
	for line := range lines(plan) {
		text, err := d.o.Runtime.Ask(ctx, line)
		if err != nil {
			return err
		}
		words = said(text)
	}
	if servers, err = d.servers(ctx, backend); err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(keys), func(k key) bool { return asWanted(k, wishes[k], d.find(servers, k)) })
	if len(missing) > 0 {
		return fmt.Errorf("%d servers of backend %s, such as %s: HAProxy says %q", len(missing), backend, d.o.Mark.name(missing[0].address), words)
	}
	return nil
}

// lines joins commands to lines that HAProxy takes.
func lines(commands []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(commands) > 0 {
			n, length := 1, len(commands[0])
			for n < len(commands) && length+len(commands[n]) < longestLine {
				length += len("; ") + len(commands[n])
				n++
			}
			if !yield(strings.Join(commands[:n], "; ")) {
				return
			}
			commands = commands[n:]
		}
	}
}
