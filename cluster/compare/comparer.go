// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/fsm"
)

const (
	// askWithin bounds how long the others may take to tell a digest: they may have to apply some entries first.
	askWithin = 2 * time.Second
	// askAgain is how long to wait before a question that nobody could decide is asked again.
	askAgain = 5 * time.Second
	// walkEvery is between the end of one walk of the whole record and the next.
	walkEvery = time.Minute
	// idleShare is which part of a core walks take all the time, and leaderShare that of one before a checkpoint.
	idleShare, leaderShare = 0.01, 0.1
)

// Options is everything a Comparer is made of. Fields without "optional" are required.
type Options struct {
	Record *fsm.State
	// Servers are those of the newest configuration.
	Servers func() []Server
	// Ask gives the digest of another server's record at an index, in hex, once it has got there. Errors: it does not answer, or does not know.
	Ask     func(ctx context.Context, s Server, at fsm.Index) (digest string, err error)
	Log     *slog.Logger
	Metrics prometheus.Registerer // optional
}

// Comparer compares this member's copy of the record with the others', and with itself.
type Comparer struct {
	o     Options
	ended chan error // holds what ends this member

	mu        sync.Mutex
	differing map[string]fsm.Index // servers that had another record than this one when they last told, and where; while this member leads
	judged    bool                 // most voters have this member's
}

// New makes a Comparer that does nothing yet. It fails on metrics that are registered already.
func New(o Options) (*Comparer, error) {
	c := &Comparer{o: o, ended: make(chan error, 1), differing: map[string]fsm.Index{}}
	if o.Metrics == nil {
		return c, nil
	}
	err := o.Metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "fairlead_raft_members_differing", Help: "Servers whose record was another one than this member's when they last told, as the leader knows; 0 on others.",
	}, func() float64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return float64(len(c.differing))
	}))
	if err != nil {
		return nil, fmt.Errorf("register metrics of compared records: %w", err)
	}
	return c, nil
}

// Run has records hashed again in idle time, and asks the others where a checkpoint says otherwise than this copy, until ctx ends. It returns nil
// then, else why this member may take no part any more: ErrDiffers, or fsm.ErrSpoiled.
func (c *Comparer) Run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { c.watch(ctx) })
	running.Go(func() { c.walk(ctx) })
	select {
	case err = <-c.ended:
	case <-ctx.Done():
	}
	cancel()
	running.Wait()
	return err
}

// Agree is asked by a leader before it proposes a checkpoint: it walks this copy, and asks the others what they have at the index of the view that it
// gives, which a majority of the voters has alike then, and tells whether all have that answer.
//
// Errors: ErrDiffers, fsm.ErrSpoiled, of which Run has this member end; ErrUndecided, ErrUntold; ctx's.
func (c *Comparer) Agree(ctx context.Context) (v *fsm.View, alike bool, err error) {
	if err := c.verify(ctx, leaderShare); err != nil {
		return nil, false, err
	}
	v = c.o.Record.Read()
	verdict, err := c.compare(ctx, v.Applied(), v.Digest())
	c.note(verdict, v.Applied())
	if err != nil {
		return nil, false, err
	}
	if len(verdict.differ) > 0 {
		c.o.Log.Error("records differ: this one is the one that most voters have", "index", v.Applied(), "digests", verdict.asSpoken)
	}
	return v, len(verdict.differ) == 0, nil
}

// Lead has what this member found as a leader be forgotten with its term; a cluster.LeaderFunc.
func (c *Comparer) Lead(ctx context.Context, _ uint64) {
	<-ctx.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.differing = map[string]fsm.Index{}
}

// Doubts tells what is wrong with a server's record as this member, which leads, and most others found it; empty for nothing.
func (c *Comparer) Doubts(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, differs := c.differing[id]; differs && c.judged {
		return fmt.Sprintf("had another record than most voters at index %d; its own log says more", at)
	}
	return ""
}

// watch asks the others whenever a checkpoint says otherwise than this copy, until a majority has told who is right.
func (c *Comparer) watch(ctx context.Context) {
	var settled, told *fsm.Contradiction
	for ctx.Err() == nil {
		v := c.o.Record.Read()
		k := c.o.Record.Contradicted()
		if k == nil || k == settled {
			_ = c.o.Record.Wait(ctx, v, fsm.TableGroup) // ctx ended
			continue
		}
		verdict, err := c.compare(ctx, k.Index, k.Have)
		switch {
		case err == nil:
			c.o.Log.Error("a checkpoint differs from the record that most voters have: whoever proposed it has another one", "index", k.Index, "proposed", k.Told, "digests", verdict.asSpoken)
			settled = k
		case errors.Is(err, ErrUndecided), errors.Is(err, ErrUntold):
			if k != told {
				c.o.Log.Error("a checkpoint differs from this record, and nobody knows yet which is right", "index", k.Index, "proposed", k.Told, "err", err)
				told = k
			}
			_ = pause(ctx, askAgain) // ctx ended
		default:
			return // ctx ended, or this member does
		}
	}
}

// compare asks all servers what they have at an index, and ends this member if most voters have another record.
func (c *Comparer) compare(ctx context.Context, at fsm.Index, have fsm.Digest) (verdict, error) {
	own, servers := have.String(), c.o.Servers()
	t := c.ask(ctx, servers, at)
	for _, s := range servers {
		if s.Self {
			t[s.ID] = own
		}
	}
	if ctx.Err() != nil {
		return verdict{}, ctx.Err()
	}
	v := judge(servers, own, t)
	switch {
	case v.right == own:
		return v, nil
	case v.right != "":
		return v, c.end(&DiffersError{v.found(at, own)})
	}
	why := ErrUndecided
	if len(v.differ) == 0 {
		why = ErrUntold
	}
	return v, fmt.Errorf("%w (index %d; %d of %d voters told nothing, %d are a majority; %s)", why, at, v.away, v.voters, v.quorum, v.asSpoken)
}

func (c *Comparer) ask(ctx context.Context, servers []Server, at fsm.Index) told {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	t := told{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, s := range servers {
		if s.Self {
			continue
		}
		asking.Go(func() {
			digest, err := c.o.Ask(ctx, s, at)
			if err != nil {
				c.o.Log.Debug("digest not told", "server", s.ID, "index", at, "err", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			t[s.ID] = digest
		})
	}
	asking.Wait()
	return t
}

// note takes in who differs from this record. Who told nothing is thought of as before, as long as it belongs.
func (c *Comparer) note(v verdict, at fsm.Index) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := map[string]fsm.Index{}
	for _, id := range v.silent {
		if before, differed := c.differing[id]; differed {
			now[id] = before
		}
	}
	for _, id := range v.differ {
		now[id] = at
	}
	c.differing, c.judged = now, v.right != ""
}

// end has Run return an error, the first one, which is given back.
func (c *Comparer) end(err error) error {
	select {
	case c.ended <- err:
	default: // it ends already
	}
	return err
}

// walk hashes the record again and again.
func (c *Comparer) walk(ctx context.Context) {
	for pause(ctx, walkEvery) == nil {
		if c.verify(ctx, idleShare) != nil {
			return
		}
	}
}

// verify hashes the record again with a share of a core.
func (c *Comparer) verify(ctx context.Context, share float64) error {
	began := time.Now()
	err := c.o.Record.Read().Verify(func() error {
		worked := time.Since(began)
		err := pause(ctx, time.Duration(float64(worked)*(1/share-1)))
		began = time.Now()
		return err
	})
	if errors.Is(err, fsm.ErrSpoiled) {
		return c.end(spoiled(err))
	}
	return err
}

// pause waits, or gives ctx's error.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
