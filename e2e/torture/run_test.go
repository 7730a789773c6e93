// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// options say what a run is made of.
type options struct {
	seed  uint64
	span  time.Duration
	kinds []kind
	logs  string
}

const (
	first    = 3 // members of a group when it is small
	spare    = 2 // more of them when it is large
	nodes    = 8
	services = 6
	diskSize = 96 << 20
)

// tuning has snapshots taken, and logs shortened, many times a round.
const tuning = "raft: {snapshotThreshold: 256, snapshotInterval: 2s, trailingLogs: 256}\n"

// calm is a time in which no fault was under way.
type calm struct{ from, until time.Duration }

// run is one group, and what is known of it.
type run struct {
	t *testing.T
	o options
	*lab.Lab
	trace   *trace
	pace    *pace
	office  *office
	history *history
	ledger  *ledger
	border  *border
	report  *report
	manners *manners
	troupe  *troupe

	manifests   map[int][]int       // nodes of services
	kept        map[string][]string // what registers of earlier rounds may hold
	stops       []func()
	after       []func()     // what waits for the end of a round
	faults      int          // that have begun and are not over
	calm        []calm       // in which there were none, by the clock of the history
	off         int          // how many faults have the switch off
	transferred bool         // an operator handed leadership on in this round
	standing    atomic.Int64 // until when, by the pace, a member that stood still counts
}

func newRun(t *testing.T, o options) *run {
	t.Helper()
	l := lab.New(t, lab.Options{Members: first, Spare: spare, Disk: diskSize, Log: "info", Extra: tuning})
	r := &run{
		t: t, o: o, Lab: l, trace: newTrace(), pace: newPace(t), office: newOffice(t, l), history: newHistory(), report: newReport(),
		manifests: map[int][]int{}, kept: map[string][]string{},
	}
	t.Cleanup(r.tell)
	r.ledger = &ledger{pace: r.pace}
	r.border = &border{pace: r.pace, bound: r.staleBound}
	r.manners = newManners()
	r.troupe = newTroupe(r)
	t.Logf("seed %d", o.seed)
	for n := 1; n <= nodes; n++ {
		r.Manifests.Node(n, true)
	}
	for i := range services {
		r.edit(i, 1+i%nodes, 1+(i+1)%nodes)
	}
	for i := range services {
		r.Bird.WaitNextHops(prefix(i), r.wanted(i)...)
	}
	r.Bird.WaitEstablished("m1", "m2", "m3")
	r.introduce()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { r.ledger.follow(ctx, r.office) })
	watched := r.Bird.WatchTable(lookEvery, r.border.hear)
	end := sync.OnceFunc(func() {
		cancel()
		all.Wait()
		watched()
	})
	t.Cleanup(end)
	r.stops = append(r.stops, end)
	return r
}

// random is a stream of a round: what is drawn from one leaves the others alone.
func (r *run) random(round int, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(r.o.seed, uint64(round)<<32|stream))
}

// introduce has clients say of which group and epoch they are.
func (r *run) introduce() {
	r.t.Helper()
	r.Eventually("the group says what it is", func() error {
		s, ok := r.Status()
		if !ok || s.Group == "" {
			return fmt.Errorf("nobody does")
		}
		r.office.group.Store(&s)
		return nil
	})
}

func prefix(i int) netip.Prefix { return netip.PrefixFrom(lab.VIP(i), 32) }

// edit has a Service's pods on other nodes.
func (r *run) edit(service int, on ...int) {
	r.t.Helper()
	r.manifests[service] = on
	want := hops{}
	for i := range r.manifests {
		want[prefix(i)] = r.wanted(i)
	}
	r.ledger.ask(want) // before it is there to be read
	r.Manifests.Service(service, on...)
}

// wanted are the next hops of a Service as manifests have it, sorted.
func (r *run) wanted(service int) []netip.Addr {
	var out []netip.Addr
	for n := 1; n <= nodes; n++ {
		for _, on := range r.manifests[service] {
			if on == n {
				out = append(out, lab.NodeAddress(n))
			}
		}
	}
	return out
}

// staleBound is for how long the switch may hold just now what the record does not want any more.
func (r *run) staleBound() time.Duration {
	if r.pace.now() < time.Duration(r.standing.Load()) {
		return afterStandstill
	}
	return max(afterDeath, afterCut)
}

// tell leaves everything about a run that failed: seed and trace in the test's log, the rest in files. Of one that did not it leaves the trace, if
// somebody named a folder.
func (r *run) tell() {
	if !r.t.Failed() && r.o.logs == "" {
		return
	}
	folder := r.o.folderForLogs(r.t)
	files := map[string]string{"trace": r.trace.String()}
	if r.t.Failed() {
		files["bird.log"], files["calls"] = r.Bird.Log(), listed(r.history.take())
		for _, m := range r.Members {
			files[m.Name+".log"] = m.Log()
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			r.t.Logf("keep %s: %v", name, err)
		}
	}
	if r.t.Failed() {
		r.t.Logf("seed %d; the whole trace and all logs are in %s; the end of the trace:\n%s", r.o.seed, folder, r.trace.last(60))
		r.t.Logf("to run it again: make torture SEED=%d ROUND=%v FOR=%v", r.o.seed, r.o.span, time.Since(r.trace.began).Round(time.Second))
	}
}
