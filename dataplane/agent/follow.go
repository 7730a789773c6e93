// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// errNobody says that no member is followed at present.
var errNobody = errors.New("no member serves this node")

// follow takes the node's state from one member after another.
func (a *Agent) follow(ctx context.Context, last desired.State) {
	steps := desired.Steps{State: last}
	retry := a.o.Tuning.backoff()
	var left *peer
	for ctx.Err() == nil {
		a.fleet.forgetHopes() // whoever came in touch so far is asked now
		for _, p := range a.fleet.order(left) {
			served, err := a.followOne(ctx, p, &steps)
			if ctx.Err() != nil {
				return
			}
			a.leave(p, served, err)
			if errors.Is(err, desired.ErrDigest) {
				steps.State.Digest = desired.Digest{} // ask for everything
			}
			left = p
			if served {
				retry.reset()
				break // begin anew with the best one
			}
		}
		if !a.rest(ctx, retry) {
			return
		}
	}
}

// rest pauses until members are asked again, at once when one comes in touch with a quorum: pauses grow long while nobody
// serves, and what the group does then would wait for the end of the last one. It tells whether ctx still runs.
func (a *Agent) rest(ctx context.Context, retry *backoff) bool {
	timer := time.NewTimer(retry.pause())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.fleet.hopes:
		retry.reset()
		return true
	case <-ctx.Done():
		return false
	}
}

// leave says why a member is no longer followed, or was not at all.
func (a *Agent) leave(p *peer, served bool, err error) {
	a.metrics.failed("follow")
	level := slog.LevelInfo // members restart
	if !served {
		level = slog.LevelWarn
	}
	a.log.Log(context.Background(), level, "member left", "member", p.address, "served", served, "err", err)
}

// followOne follows a member until it ends the stream, falls silent or sends what cannot be. It tells whether
// the member served anything.
func (a *Agent) followOne(ctx context.Context, p *peer, steps *desired.Steps) (served bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	own := &bond{peer: p, ctx: ctx, leave: cancel}
	a.try(own)
	defer a.try(nil)
	first := time.AfterFunc(a.o.Tuning.FirstStep, func() { cancel(fmt.Errorf("nothing within %v", a.o.Tuning.FirstStep)) })
	defer first.Stop()
	req := &fairleadv1.SyncRequest{
		Node: a.o.Node, Boot: a.o.Boot, Have: desired.RevisionMessage(steps.State.Revision), AddressesOnly: a.o.AddressesOnly, AllServices: a.o.AllServices,
		Tunnels: a.o.Tunnels, Redirects: a.o.Redirects,
	}
	for _, at := range a.o.Underlay {
		req.Addresses = append(req.Addresses, at.AsSlice())
	}
	if steps.State.Digest != (desired.Digest{}) {
		req.Digest = steps.State.Digest[:]
	}
	stream, err := p.conn().Sync(ctx, req)
	if err != nil {
		return false, because(ctx, err)
	}
	defer func() { _ = stream.Close() }() // it ended, or is no longer wanted
	told := desired.Steps{State: steps.State}
	for stream.Receive() {
		whole, err := told.Add(stream.Msg())
		if err != nil {
			a.metrics.failed("merge")
			return served, err
		}
		if !whole {
			continue
		}
		if !served {
			first.Stop()
			served = true
			a.enter(own)
			defer a.enter(nil)
		}
		steps.State = told.State
		a.take(told.State)
	}
	if err := stream.Err(); err != nil {
		return served, because(ctx, err)
	}
	return served, io.EOF
}

// because prefers our own reason for ending a stream over what that looks like from outside.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// take hands a state on to be carried out.
func (a *Agent) take(s desired.State) {
	a.note(func(st *Status) {
		st.Told, st.Group, st.Leaving = s.Revision, s.Group, s.Leaving
		if st.Behind.IsZero() && st.Applied != st.Told {
			st.Behind = time.Now()
		}
	})
	var members []string
	for _, m := range s.Members {
		members = append(members, m.Address)
	}
	a.fleet.set(members)
	a.told.put(s)
}

// bond is with the member that is followed, or is asked to serve, for as long as it is.
type bond struct {
	*peer
	ctx   context.Context // ends with it
	leave context.CancelCauseFunc
}

// enter says which member is followed.
func (a *Agent) enter(b *bond) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at, a.status.Member = b, ""
	if b != nil {
		a.status.Member = b.address
		a.log.Info("member followed", "member", b.address, "revision", a.status.Told.String())
	}
	a.metrics.following(b != nil)
}

func (a *Agent) following() *bond {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at
}

// try says which member is asked to serve, or serves.
func (a *Agent) try(b *bond) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tried = b
}

func (a *Agent) trying() *bond {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.tried
}

// forsake leaves a member if it is the one that is followed, or that is asked to serve.
func (a *Agent) forsake(p *peer, why error) {
	if at := a.trying(); at != nil && at.peer == p {
		at.leave(why)
	}
}

// reconsider leaves a member that serves worse than another one would. It may still be believed to lead, or hear from
// the leader now and then, while what it says reaches nobody; and one that was asked first when an agent starts may be out
// of reach.
func (a *Agent) reconsider() {
	if at := a.trying(); at != nil && at.doubtful() && a.fleet.best() > at.rank() {
		at.leave(errors.New("another member is in better touch with the group"))
	}
}
