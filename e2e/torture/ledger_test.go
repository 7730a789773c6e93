// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"sync"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/records"
	"fairlead.io/fairlead/cluster/admin"
)

// hops are the next hops that prefixes are to have.
type hops map[netip.Prefix][]netip.Addr

func (h hops) has(p netip.Prefix, hop netip.Addr) bool { return slices.Contains(h[p], hop) }

// reading is what somebody read at some moment between two times.
type reading struct {
	begin, end time.Duration
	hops       hops
}

// ledger is what the record wanted when, as linearizable reads showed it, and what manifests asked for. Its times are those of a pace.
type ledger struct {
	pace *pace

	mu       sync.Mutex
	readings []reading // one after the other
	asked    []reading // each from its begin on, until the next one's
}

// ask notes that manifests want something else from now on.
func (l *ledger) ask(want hops) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, reading{begin: l.pace.now(), hops: want})
}

// mayHave tells whether the record may have wanted a next hop at some moment from one time to another. It may where a reading shows it, up to
// the readings beside that one; where there is no reading; and where manifests asked for it and then no longer, so that two readings without it
// may have it between them.
func (l *ledger) mayHave(p netip.Prefix, hop netip.Addr, from, to time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.readings) == 0 || from < l.readings[0].begin || to > l.readings[len(l.readings)-1].end {
		return true
	}
	for i, r := range l.readings {
		next := l.readings[min(i+1, len(l.readings)-1)]
		if next.end < from || r.begin > to {
			continue
		}
		if r.hops.has(p, hop) || next.hops.has(p, hop) || l.cameAndWent(p, hop, r.begin-planned, next.end) {
			return true
		}
	}
	return false
}

// planned is within which time an edit of a manifest is in the record while nothing fails.
const planned = 5 * time.Second

// cameAndWent tells whether manifests began to ask for a hop and ceased to, both from one time to another.
func (l *ledger) cameAndWent(p netip.Prefix, hop netip.Addr, from, to time.Duration) bool {
	came, had := false, false
	for _, a := range l.asked {
		has := a.hops.has(p, hop)
		if inside := a.begin >= from && a.begin <= to; inside && has != had {
			if came && !has {
				return true
			}
			came = came || has
		}
		had = has
	}
	return false
}

// forget leaves out what is older than a time, but for the last of it.
func (l *ledger) forget(before time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	older := func(of []reading) int { return max(0, len(of)-1-countFrom(of, before)) }
	l.readings = slices.Clone(l.readings[older(l.readings):])
	l.asked = slices.Clone(l.asked[older(l.asked):])
}

func countFrom(of []reading, from time.Duration) int {
	n := 0
	for n < len(of) && of[len(of)-1-n].begin >= from {
		n++
	}
	return n
}

// wanted is what the record was read to want last.
func (l *ledger) wanted() (hops, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.readings) == 0 {
		return nil, 0
	}
	r := l.readings[len(l.readings)-1]
	return r.hops, r.begin
}

const (
	// between two reads of the record.
	readEvery = 50 * time.Millisecond
	// withinRead is how long a member may take to answer before another one is asked.
	withinRead = time.Second
)

// follow reads the record again and again, by one member after the other, until ctx ends.
func (l *ledger) follow(ctx context.Context, at *office) {
	for n := 0; ctx.Err() == nil; n++ {
		if up := at.running(); len(up) > 0 {
			begin := l.pace.now()
			if want, err := routes(ctx, at.apis[up[n%len(up)].Name]); err == nil {
				l.mu.Lock()
				l.readings = append(l.readings, reading{begin, l.pace.now() + beat, want})
				l.mu.Unlock()
				n-- // it answers: go on with it
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(readEvery):
		}
	}
}

// routes reads which next hops the record wants.
func routes(ctx context.Context, api *admin.Client) (hops, error) {
	ctx, cancel := context.WithTimeout(ctx, withinRead)
	defer cancel()
	answer, err := api.Record.Get(ctx, &fairleadv1.GetRequest{Kind: "routes", Linearizable: true})
	if err != nil {
		return nil, err
	}
	want := hops{}
	for _, d := range answer.GetDocuments() {
		var r records.Route
		if err := json.Unmarshal([]byte(d), &r); err != nil {
			return nil, err
		}
		p, err := netip.ParsePrefix(r.Prefix)
		if err != nil {
			return nil, err
		}
		for _, h := range r.NextHops {
			if h.State == "withdrawing" {
				continue
			}
			a, err := netip.ParseAddr(h.Address)
			if err != nil {
				return nil, err
			}
			want[p] = append(want[p], a)
		}
		slices.SortFunc(want[p], netip.Addr.Compare)
	}
	return want, nil
}
