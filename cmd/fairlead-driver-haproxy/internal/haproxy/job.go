// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"
)

// job is a call that changes one server, from its arrival to its answer.
type job struct {
	ctx    context.Context
	key    key
	want   *wish // nil: the server shall go
	dryRun bool

	// What follows is of whoever has the turn, until done is closed.
	begun    bool
	have     *Server  // before the commands of this round
	commands []string // of this round
	touched  bool     // an earlier round may have done something: nobody can promise that all is as it was
	alone    bool     // it goes by itself, so that what HAProxy says is about it
	again    bool     // what its commands came to does not count
	before   *Server  // that is to be replaced, before its commands
	undoing  bool     // it could not be deleted, and is to serve again
	other    bool     // it was touched before
	ended    bool
	remark   string // what a user should know of what was done
	running  string // why it is not done yet, if it is not
	err      error
	done     chan struct{}
}

// end answers. Nil is done.
func (j *job) end(err error) {
	j.err, j.ended = err, true
	close(j.done)
}

// refuse answers that nothing was done, if that is certain.
func (j *job) refuse(err error) {
	if j.touched {
		j.end(err)
		return
	}
	j.end(&refusal{err})
}

// begin looks whether a job is to be done still, and ends it if not.
func (d *Driver) begin(j *job) bool {
	if j.begun {
		return true
	}
	err := j.ctx.Err()
	if err == nil {
		err = d.late.check(j.ctx, j.key)
	}
	if err != nil {
		j.end(err)
		return false
	}
	j.begun = true
	return true
}

// prepare finds out which commands a job needs now. It ends those that need no look after.
func (d *Driver) prepare(j *job, seen sight) {
	j.have, j.commands, j.again = d.find(seen.servers, j.key), nil, false
	if j.want != nil {
		j.remark = d.beside(seen.servers, j.key)
	}
	if j.dryRun {
		j.end(nil)
		return
	}
	d.late.note(j.ctx, j.key)
	switch {
	case j.undoing:
		j.commands = planServe(d.o.Mark, j.key)
	case stale(j) && seen.old:
		j.again = true
	case stale(j):
		j.before, j.commands = j.have, planReplace(d.o.Mark, j.key)
	case j.want != nil:
		j.before = nil
		j.commands = planEnsure(d.o.Mark, j.key, *j.want, j.have)
		if j.have == nil && seen.old { // it may be there by now
			j.commands = append(j.commands, planMaxConn(d.o.Mark, j.key, *j.want))
		}
	case j.have == nil && !seen.old:
		d.o.Book.drop(j.key)
		j.end(nil)
	case j.have == nil || seen.old && j.have.maintained(): // whose connections may be shut, which is for a new look to say
	default:
		j.commands = planRemove(d.o.Mark, j.key, *j.have, d.o.Drain)
	}
}

// judge decides by the table what the commands of a job came to. What HAProxy said is told to people. The commands were
// those of a job alone, or followed from an old look.
func (d *Driver) judge(j *job, after sight, words string, alone, old bool) {
	now := d.find(after.servers, j.key)
	name := d.o.Mark.name(j.key.address)
	switch {
	case j.undoing:
		d.undone(j, now, words)
	case j.before != nil && now == nil:
		j.touched = true // and is added in the next round
	case j.before != nil && now.maintained():
		j.undoing, j.other, j.touched = true, j.touched, true
	case j.want != nil && asWanted(j.key, *j.want, now) && !j.again && j.before == nil:
		j.remark = d.beside(after.servers, j.key)
		d.o.Book.put(j.key, *j.want)
		if len(j.commands) > 0 {
			d.o.Log.Info("server ready", "backend", j.key.backend, "address", j.key.address.String(), "weight", j.want.weight)
		}
		j.end(nil)
	case j.want == nil && now == nil:
		d.o.Book.drop(j.key)
		if len(j.commands) > 0 {
			d.o.Log.Info("server removed", "backend", j.key.backend, "address", j.key.address.String())
		}
		j.end(nil)
	case j.want == nil && len(j.commands) > 0 && now.maintained():
		d.o.Book.drop(j.key)
		j.running = fmt.Sprintf("server %s gets no new requests; those that run have %v", name, d.o.Drain)
		j.end(nil)
	case old || !alone:
		j.touched = j.touched || !untouched(j, now)
		j.alone = !old
	default:
		err := fmt.Errorf("server %s of backend %s: HAProxy says %q", name, j.key.backend, words)
		if j.want == nil || j.have == nil && now == nil || same(j.before, now) {
			j.refuse(err)
			return
		}
		j.end(err)
	}
}

// untouched tells whether the commands of a job surely did nothing. What a server takes at most is not seen.
func untouched(j *job, now *Server) bool {
	switch {
	case j.again || j.want == nil && len(j.commands) == 0:
		return true
	case j.have == nil || now == nil:
		return j.have == nil && now == nil
	}
	return (j.want == nil || j.before != nil) && same(j.have, now)
}

// same tells whether a server is as it was, as far as it shows.
func same(was, now *Server) bool {
	if was == nil || now == nil {
		return false
	}
	before := *was
	before.Since = now.Since
	return before == *now
}

// stale tells whether a server that is there can be had as wanted only by adding it anew.
func stale(j *job) bool {
	return j.want != nil && j.have != nil && j.want.interval > 0 && j.have.Interval != j.want.interval
}

// undone ends a job whose server could not be replaced.
func (d *Driver) undone(j *job, now *Server, words string) {
	err := fmt.Errorf("%s and %s of server %s of backend %s can be changed only while it has no connections, which it has: it serves as before",
		checkKey, intervalKey, d.o.Mark.name(j.key.address), j.key.backend)
	switch {
	case same(j.before, now) && !j.other:
		j.end(&refusal{err}) // everything is as it was
	case now != nil && now.ready():
		j.end(err)
	default:
		j.end(fmt.Errorf("server %s of backend %s is out of service: HAProxy says %q", d.o.Mark.name(j.key.address), j.key.backend, words))
	}
}

// lost ends a job whose commands got no answer that can be read.
func (d *Driver) lost(j *job, err error) {
	unread := errors.Is(err, ErrUnreachable)
	if j.want == nil && !unread {
		d.o.Book.drop(j.key) // nobody knows what happened: HAProxy shall not get it back
	}
	if unread && (j.want == nil || j.have == nil) { // a server that is there may have its new maxconn
		j.refuse(err)
		return
	}
	j.end(err)
}

// blind ends a job for which HAProxy gave no table. Where there is no backend there is no server.
func (d *Driver) blind(j *job, err error) {
	switch {
	case !d.begin(j):
	case j.want != nil || !errors.Is(err, errNoBackend):
		j.refuse(err)
	default:
		if !j.dryRun {
			d.late.note(j.ctx, j.key)
			d.o.Book.drop(j.key)
		}
		j.end(nil)
	}
}
