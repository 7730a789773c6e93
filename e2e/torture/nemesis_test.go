// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/e2e/lab"
)

// step is something that the nemesis does at some time after a round began.
type step struct {
	at time.Duration
	do func()
}

// kind is a kind of faults.
type kind struct {
	name   string
	weight int
	// known is why it is not drawn unless somebody asks: what the group is known not to withstand yet.
	known string
	// probe is a command that fails on machines that have no such faults.
	probe []string
	// takes says that it takes a member's data: of a group that has lost two members' at once nothing is promised.
	takes bool
	// plan draws one fault, which is over by the end.
	plan func(r *run, rng *rand.Rand, begin, end time.Duration) []step
}

// kinds are all of them.
var kinds = []kind{
	killed, blackout, rebooted, spoken, stopped, stutters,
	cutOff, deaf, parted, flapping, lossy,
	switched,
	full, flipped, old, replaced,
	transferred, transferredTwice, snapshotted, grown, shrunk, recovered, restored,
}

// drawn are the kinds that a run draws from.
func drawn(t *testing.T, known, only []string) (out []kind) {
	t.Helper()
	for _, name := range slices.Concat(known, only) {
		if name != "all" && !slices.ContainsFunc(kinds, func(k kind) bool { return k.name == name }) {
			t.Fatalf("no kind of faults is called %q", name)
		}
	}
	for _, k := range kinds {
		if len(k.probe) > 0 {
			if text, err := exec.Command(k.probe[0], k.probe[1:]...).CombinedOutput(); err != nil {
				t.Logf("no %s here: %v: %s", k.name, err, text)
				continue
			}
		}
		asked := slices.Contains(known, k.name) || slices.Contains(known, "all") || slices.Contains(only, k.name)
		if (k.known == "" || asked) && (len(only) == 0 || slices.Contains(only, k.name)) {
			out = append(out, k)
		}
	}
	return out
}

const (
	// mostFaults begin in a round of ten seconds, and more in a longer one.
	mostFaults = 5
	// editEvery is how often a manifest is edited.
	editEvery = 1200 * time.Millisecond
)

// draw gives the steps of a round: its faults, and edits of manifests. They depend on seed and number of the round, and on who leads by then.
func (r *run) draw(n int) []step {
	rng := r.random(n, 1)
	var steps []step
	taken := false
	for i := range 1 + rng.IntN(max(mostFaults, mostFaults*int(r.o.span/time.Second)/10)) {
		k, of := r.oneOf(rng), r.random(n, uint64(10+i))
		begin := time.Duration(of.Int64N(int64(r.o.span * 3 / 4))).Round(time.Millisecond)
		end := (begin + time.Duration(of.Int64N(int64(r.o.span-begin)))).Round(time.Millisecond)
		if k.takes && taken {
			continue
		}
		taken = taken || k.takes
		steps = append(steps, r.counted(k.plan(r, of, begin, end))...)
	}
	edits := r.random(n, 2)
	for at := time.Duration(0); at < r.o.span; at += editEvery {
		service, a := edits.IntN(services), 1+edits.IntN(nodes)
		b := 1 + (a-1+1+edits.IntN(nodes-1))%nodes
		steps = append(steps, step{at, func() {
			r.trace.act("edit", "service %d is on nodes %d and %d", service, a, b)
			r.edit(service, a, b)
		}})
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// counted has the steps of a fault tell when it begins and when it is over.
func (r *run) counted(of []step) []step {
	begin := of[0].do
	of[0].do = func() {
		if n := len(r.calm); r.faults == 0 && n > 0 {
			r.calm[n-1].until = r.history.now()
		}
		r.faults++
		begin()
	}
	last := &of[len(of)-1]
	end := last.do
	last.do = func() {
		end()
		if r.faults--; r.faults == 0 {
			r.calm = append(r.calm, calm{r.history.now(), math.MaxInt64})
		}
	}
	return of
}

// oneOf draws a kind by its weight.
func (r *run) oneOf(rng *rand.Rand) kind {
	total := 0
	for _, k := range r.o.kinds {
		total += k.weight
	}
	n := rng.IntN(total)
	for _, k := range r.o.kinds {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	panic("weights that do not add up")
}

// carryOut takes the steps of a round.
func (r *run) carryOut(steps []step) {
	r.t.Helper()
	began := time.Now()
	for _, s := range steps {
		time.Sleep(time.Until(began.Add(s.at)))
		r.troupe.count()
		s.do()
	}
}

// leader is who leads by the word of the first member that knows, or nil.
func (r *run) leader() *lab.Member {
	for _, m := range r.office.running() {
		ctx, cancel := context.WithTimeout(context.Background(), withinRead/2)
		s, err := r.office.apis[m.Name].Raft.Status(ctx, &fairleadv1.StatusRequest{})
		cancel()
		if err == nil && s.GetLeader() != "" {
			return r.Member(s.GetLeader())
		}
	}
	return nil
}

// victim draws a way to choose a member: each second time it is whoever leads when the fault begins.
func (r *run) victim(rng *rand.Rand) func() *lab.Member {
	leads, n := rng.IntN(2) == 0, rng.IntN(1<<16)
	return func() *lab.Member {
		if leads {
			if m := r.leader(); m != nil {
				return m
			}
		}
		all := r.troupe.members()
		return all[n%len(all)]
	}
}

func names(members []*lab.Member) string {
	var out []string
	for _, m := range members {
		out = append(out, m.Name)
	}
	return strings.Join(out, ", ")
}
