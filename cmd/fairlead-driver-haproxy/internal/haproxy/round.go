// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// longestLine bounds the commands that are given at once, in bytes: HAProxy refuses a line that is longer than its
// buffer, which is twice that unless `tune.bufsize` says otherwise.
const longestLine = 8 << 10

// do has a job done. HAProxy's table of a backend takes it milliseconds, and is what a call costs: whoever has the turn
// does all jobs that wait for one backend in rounds, which are one line of commands, and one look which of them it did.
// Errors: those of the job, or its caller stopped waiting; what was not begun by then never is.
func (d *Driver) do(j *job) error {
	j.done = make(chan struct{})
	d.waitingMu.Lock()
	d.waiting = append(d.waiting, j)
	d.waitingMu.Unlock()
	for {
		select {
		case <-j.done:
			return j.err
		case <-j.ctx.Done():
			return j.ctx.Err()
		case d.turn <- struct{}{}:
			d.lead(j)
		}
	}
}

// lead does jobs for all who wait, unless somebody else has done this one meanwhile, and ends the turn.
func (d *Driver) lead(j *job) {
	defer func() { <-d.turn }()
	select {
	case <-j.done:
	default:
		d.carryOut(d.takeJobs())
	}
}

// takeJobs takes the jobs that wait for one backend, that of the first, in the order in which they came.
func (d *Driver) takeJobs() []*job {
	d.waitingMu.Lock()
	defer d.waitingMu.Unlock()
	var jobs, others []*job
	for _, j := range d.waiting {
		switch {
		case j.ctx.Err() != nil:
			j.end(j.ctx.Err())
		case len(jobs) == 0 || j.key.backend == jobs[0].key.backend:
			jobs = append(jobs, j)
		default:
			others = append(others, j)
		}
	}
	d.waiting = others
	return jobs
}

// carryOut does jobs of one backend, and ends all of them.
func (d *Driver) carryOut(jobs []*job) {
	if len(jobs) == 0 {
		return
	}
	// Any caller may go while HAProxy is asked for all of them.
	ctx, backend := context.WithoutCancel(jobs[0].ctx), jobs[0].key.backend
	seen, err := d.view(backend), error(nil)
	if seen.servers == nil || slices.ContainsFunc(jobs, func(j *job) bool { return j.dryRun }) {
		seen, err = d.look(ctx, backend)
	}
	for err == nil && len(jobs) > 0 {
		again := d.round(ctx, backend, &seen, jobs)
		jobs = slices.DeleteFunc(jobs, func(j *job) bool { return j.ended })
		if again && len(jobs) > 0 {
			seen, err = d.look(ctx, backend)
		}
	}
	for _, j := range jobs {
		d.blind(j, err)
	}
	if err == nil && seen.servers != nil {
		d.seen[backend] = seen
	} else {
		delete(d.seen, backend)
	}
}

// sight is a look at the servers of a backend.
type sight struct {
	servers []Server
	at      time.Time
	// old: it was before the turn. It is good enough to find out what HAProxy has to be told, and no more.
	old bool
}

// lasting is how long a look serves others who come after. Commands that follow from it are often the right ones; whether
// they were is seen by the look after them.
const lasting = time.Second

// view is the newest look at a backend, empty if that is too old.
func (d *Driver) view(backend string) sight {
	s, ok := d.seen[backend]
	if !ok || time.Since(s.at) > lasting {
		return sight{}
	}
	s.old = true
	return s
}

func (d *Driver) look(ctx context.Context, backend string) (sight, error) {
	servers, err := d.servers(ctx, backend)
	return sight{servers: servers, at: time.Now()}, err
}

// round does what can be done at once, beginning with the first job. It leaves the look after it in seen, and tells
// whether there has to be one more: all that took part have heard that nobody knows what they did.
func (d *Driver) round(ctx context.Context, backend string, seen *sight, jobs []*job) (again bool) {
	party := d.gather(*seen, jobs)
	d.setMaxConns(ctx, party, seen.old)
	var commands []string
	party = slices.DeleteFunc(party, func(j *job) bool {
		if !j.ended && !seen.old && len(j.commands) == 0 {
			d.o.Book.put(j.key, *j.want)
			j.end(nil)
		}
		return j.ended
	})
	for _, j := range party {
		commands = append(commands, j.commands...)
	}
	if len(party) == 0 {
		return false
	}
	words, servers, err := d.tell(ctx, backend, commands)
	after := sight{servers: servers, at: time.Now()}
	alone := len(party) == 1
	for _, j := range party {
		switch {
		case err != nil && seen.old && len(j.commands) == 0:
			j.touched = j.touched || j.want != nil && !j.again
		case err != nil:
			d.lost(j, err)
		default:
			d.judge(j, after, words, alone, seen.old)
		}
	}
	*seen = after
	return err != nil
}

// gather prepares jobs until the line is full: at most one for each server, since a job has to see what the one before it
// did.
func (d *Driver) gather(seen sight, jobs []*job) []*job {
	var party []*job
	taken, length := map[key]bool{}, 0
	for _, j := range jobs {
		if taken[j.key] || j.alone && len(party) > 0 {
			taken[j.key] = true
			continue
		}
		taken[j.key] = true
		if !d.begin(j) {
			continue
		}
		if d.prepare(j, seen); j.ended {
			continue
		}
		if length += len(planMaxConn(d.o.Mark, j.key, wish{})) + len(strings.Join(j.commands, "; ")); length > longestLine && len(party) > 0 {
			break
		}
		if party = append(party, j); j.alone {
			break
		}
	}
	return party
}

// setMaxConns is the first thing that is done to servers that are there. It ends the jobs of those that HAProxy does not
// do it to, unless that may be since they are gone.
func (d *Driver) setMaxConns(ctx context.Context, party []*job, old bool) {
	var jobs []*job
	var commands []string
	for _, j := range party {
		if j.want != nil && j.have != nil && j.before == nil && !j.again {
			jobs, commands = append(jobs, j), append(commands, planMaxConn(d.o.Mark, j.key, *j.want))
		}
	}
	if len(jobs) == 0 {
		return
	}
	text, err := d.o.Runtime.Ask(ctx, strings.Join(commands, "; "))
	words := said(text)
	for _, j := range jobs {
		switch {
		case errors.Is(err, ErrUnreachable):
			j.refuse(err)
		case err != nil:
			j.end(err)
		case words == "":
		case len(jobs) > 1:
			d.setMaxConns(ctx, []*job{j}, old) // to hear which of them it is about
		case old:
			j.commands, j.again = nil, true
		default:
			j.refuse(fmt.Errorf("maxconn of server %s of backend %s: HAProxy says %q", d.o.Mark.name(j.key.address), j.key.backend, words))
		}
	}
}
