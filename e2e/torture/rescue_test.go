// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"
)

// recovered is a group that an operator takes for lost: all members end, one becomes a group of its own, and the others begin anew. It waits
// for the end of the round, since what only others have is lost then, as is documented.
var recovered = kind{name: "recover", weight: 1, plan: func(r *run, rng *rand.Rand, begin, _ time.Duration) []step {
	n := rng.IntN(first)
	return []step{{begin, func() { r.after = append(r.after, func() { r.recover(n) }) }}}
}}

func (r *run) recover(n int) {
	r.t.Helper()
	one := r.Members[n]
	r.trace.act("recover", "by what %s has", one.Name)
	for _, m := range r.troupe.members() {
		m.Kill()
	}
	if out, stderr, code := r.CLI("raft", "recover", "--config", one.Config, "--yes"); code != 0 {
		r.t.Fatalf("recover %s: exit %d: %s%s", one.Name, code, out, stderr)
	}
	r.troupe.start(one)
	r.introduce()
	for _, m := range r.troupe.members() {
		if m != one {
			r.troupe.replace(m)
		}
	}
}

// restored is a backup that an operator puts back at the end of a round.
var restored = kind{name: "restore", weight: 2, plan: func(r *run, _ *rand.Rand, begin, _ time.Duration) []step {
	return []step{{begin, func() { r.after = append(r.after, r.restore) }}}
}}

func (r *run) restore() {
	r.t.Helper()
	r.trace.act("restore", "a backup")
	backup := filepath.Join(r.t.TempDir(), "backup")
	r.command("raft", "backup", backup)
	ctx, later := context.Background(), fmt.Sprintf("later-%d", r.trace.counts["restore"])
	r.within("a write after the backup", commitsWithin, func() error {
		for _, m := range r.office.running() {
			if how, _ := r.office.put(ctx, m, later, "gone"); how == done {
				return nil
			}
		}
		return fmt.Errorf("nobody takes it")
	})
	r.command("raft", "restore", backup)
	r.introduce()
	r.kept[later] = []string{""}
}

// command gives a command that has to succeed in time, and may be given again: a group to which nothing is done any more may be without a
// leader for a moment on a machine that has much else to do, and the operator does what he is told then.
func (r *run) command(args ...string) {
	r.t.Helper()
	what := "fairlead " + strings.Join(args, " ")
	r.within(what, commitsWithin, func() error {
		out, stderr, code := r.CLI(args...)
		if code == 0 {
			return nil
		}
		text := strings.Join(strings.Fields(out+stderr), " ")
		r.trace.note("%s ended with %d: %s", what, code, text)
		return fmt.Errorf("exit %d: %s", code, text)
	})
}
