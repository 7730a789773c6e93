// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"fairlead.io/fairlead/dataplane/bgp/birdtest"
)

// Bounds of a group that nothing is done to any more, by the pace.
const (
	commitsWithin = 30 * time.Second
	agreesWithin  = 90 * time.Second
)

// round has the group go through what the nemesis drew for it, heals everything, and judges.
func (r *run) round(n int) {
	r.t.Helper()
	var keys []string
	for i := range registers {
		keys = append(keys, fmt.Sprintf("r%d-%d", n, i))
	}
	defer r.judge(n) // also of a group that does not come back
	stop := r.crowd(n, keys)
	defer stop()
	r.trace.note("round %d", n)
	r.transferred = false
	r.carryOut(r.draw(n))
	r.heal()
	healed := r.pace.now()
	r.committed(n, keys[0])
	stop()
	r.settled()
	r.readAll(keys)
	r.agreed()
	r.switchIsRight(healed)
	r.rescued()
}

// rescued does what waits for a group that is whole, and has it whole again.
func (r *run) rescued() {
	r.t.Helper()
	for _, act := range r.after {
		act()
		begun := r.pace.now()
		r.settled()
		r.agreed()
		r.remember(context.Background(), len(r.kept))
		r.switchIsRight(begun)
	}
	r.after = nil
}

// remarkable is a wait that is told, though it is within its bound.
const remarkable = 10 * time.Second

// within waits for something within a bound by the pace, and fails the test if it does not come.
func (r *run) within(what string, bound time.Duration, look func() error) {
	r.t.Helper()
	var last error
	for began := r.pace.now(); ; {
		r.troupe.count()
		err := look()
		took := r.pace.now() - began
		switch {
		case err == nil:
			if took > remarkable {
				r.trace.note("it took %v of the pace: %s; until then: %v", took, what, last)
				r.t.Logf("it took %v of the pace: %s; until then: %v", took, what, last)
			}
			return
		case took > bound:
			r.t.Fatalf("not within %v of the pace: %s; last seen: %v", bound, what, err)
		}
		last = err
		time.Sleep(beat)
	}
}

// committed waits until the group takes a write again.
func (r *run) committed(n int, key string) {
	r.t.Helper()
	c := &client{n: clients, at: r.office, history: r.history, random: r.random(n, 99)}
	r.within("a write is acknowledged", commitsWithin, func() error {
		if one := c.write(context.Background(), key); one.told != done {
			return fmt.Errorf("%s: %s", one.told, one.why)
		}
		return nil
	})
}

// readAll has each member that runs say what is in registers of this round, and of some earlier ones.
func (r *run) readAll(keys []string) {
	r.t.Helper()
	ctx := context.Background()
	for _, key := range keys {
		for _, m := range r.office.running() {
			r.within(m.Name+" reads", commitsWithin, func() error {
				one := call{client: clients, key: key, began: r.history.now(), by: m.Name, told: done}
				value, err := r.office.get(ctx, m, key)
				one.value, one.ended = value, r.history.now()
				if err == nil {
					r.history.add(one)
				}
				return err
			})
		}
	}
	r.remember(ctx, 24)
}

// remember reads registers of earlier rounds, so many at most, and fails the test if one does not hold what it held then.
func (r *run) remember(ctx context.Context, most int) {
	r.t.Helper()
	for key, may := range r.kept { // whichever of them
		if most--; most < 0 {
			return
		}
		r.within("a register of an earlier round is read", commitsWithin, func() error {
			up := r.office.running()
			value, err := r.office.get(ctx, up[0], key)
			if err == nil && !slices.Contains(may, value) {
				r.t.Errorf("register %s held %q, and holds %q now", key, may, value)
			}
			return err
		})
	}
}

// agreed waits until all members have one record and are as many as there should be.
func (r *run) agreed() {
	r.t.Helper()
	r.within("all members have one record", agreesWithin, func() error {
		s, ok := r.Status()
		if !ok || s.Leader == "" {
			return errors.New("no leader")
		}
		if want := r.troupe.size(); len(s.Members) != want {
			return fmt.Errorf("%d members, want %d", len(s.Members), want)
		}
		for _, m := range s.Members {
			if m.Suffrage != "voter" || !m.Healthy {
				return fmt.Errorf("%s is a %s, healthy: %v", m.Name, m.Suffrage, m.Healthy)
			}
			if m.Applied != s.Members[0].Applied || m.Digest != s.Members[0].Digest {
				return fmt.Errorf("%s is at %d with %s, %s at %d with %s", m.Name, m.Applied, m.Digest, s.Members[0].Name, s.Members[0].Applied, s.Members[0].Digest)
			}
		}
		r.office.group.Store(&s)
		return nil
	})
}

// switchIsRight waits until manifests, record and switch say the same.
func (r *run) switchIsRight(healed time.Duration) {
	r.t.Helper()
	r.within("the switch sends packets where manifests say", agreesWithin, func() error {
		record, at := r.ledger.wanted()
		if at < healed {
			return errors.New("nobody read the record since")
		}
		table := r.Bird.ECMP()
		for i := range services {
			p, want := prefix(i), r.wanted(i)
			if !slices.Equal(record[p], want) {
				return fmt.Errorf("%s: the record wants %v, manifests %v", p, record[p], want)
			}
			j := slices.IndexFunc(table, func(e birdtest.Entry) bool { return e.Prefix == p })
			if j < 0 || !slices.Equal(table[j].NextHops, want) {
				return fmt.Errorf("%s: the switch has %v, want %v", p, table, want)
			}
		}
		return nil
	})
	r.border.knows()
}

// judge tells what was wrong in a round, and ends the test if anything was, now or before.
func (r *run) judge(n int) {
	r.t.Helper()
	calls := r.history.take()
	wrong, looked := judge(calls)
	views := r.border.take()
	wrong = append(wrong, judgeBorder(views, r.ledger, r.announced())...)
	wrong = append(wrong, r.manners.judge(r)...)
	r.ledger.forget(r.pace.now() - 2*afterStandstill)
	r.report.judged(calls, looked, len(views))
	r.report.recovered(calls, r.calm)
	r.calm = nil
	r.keep(calls)
	r.report.round()
	r.trace.note("round %d is over: %s", n, r.report.line())
	r.t.Logf("round %d: %s", n, r.report.line())
	for _, text := range wrong {
		r.t.Errorf("round %d: %s", n, text)
	}
	if r.t.Failed() {
		r.history.restore(calls)
		r.t.FailNow()
	}
}

// announced are the prefixes that are to be at the switch all along.
func (r *run) announced() (out []netip.Prefix) {
	for i := range services {
		out = append(out, prefix(i))
	}
	return out
}

// keep remembers what registers of a round may hold from now on: what was read last, and what may still come of a put whose end nobody knows.
func (r *run) keep(calls []call) {
	last := map[string]string{}
	for _, c := range calls {
		if !c.put && c.told == done {
			last[c.key] = c.value
		}
		if c.put && c.told == unknown {
			r.kept[c.key] = append(r.kept[c.key], c.value)
		}
	}
	for key, value := range last {
		r.kept[key] = append(r.kept[key], value)
	}
}

// finish looks once more at all registers, and tells the figures of the whole run.
func (r *run) finish() {
	r.t.Helper()
	r.remember(context.Background(), len(r.kept))
	for _, stop := range r.stops {
		stop()
	}
	r.t.Logf("seed %d: %s", r.o.seed, strings.Join(r.report.lines(r), "\n\t"))
}
