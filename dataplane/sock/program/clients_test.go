// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"fairlead.io/fairlead/dataplane/sock"
)

// fill has the tables of clients hold so many rows; of affinity's and flows' the first were used just now, the others three minutes ago.
func fill(t *testing.T, p *Program, records, memories, recent int) {
	t.Helper()
	now, err := monotonic()
	if err != nil {
		t.Fatal(err)
	}
	recordKeys, recorded := make([]sockRecordKey, records), make([]sockRecord, records)
	for i := range recordKeys {
		recordKeys[i].Socket = uint64(i + 1)
		recorded[i].Rule = uint32(i % 3)
	}
	keys, values := make([]sockMemoryKey, memories), make([]sockMemory, memories)
	for i := range keys {
		keys[i].Client, values[i].Last = uint64(i+1), uint64(now)
		if i >= recent {
			values[i].Last = uint64(now - 3*time.Minute)
		}
	}
	err = put(p.maps.Records, "records", recordKeys, recorded)
	for _, m := range []*ebpf.Map{p.maps.Affinity, p.maps.Flows} {
		err = errors.Join(err, put(m, "memories", keys, values))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Balancing §20: rows of tables that clients fill are counted, those of more than one batch too, and those that were used of late apart.
// Rule: balancing §20.
func TestRowsOfClientsAreCounted(t *testing.T) {
	l := newLab(t)
	p := l.open()
	for _, c := range []struct{ records, memories, recent int }{{0, 0, 0}, {1, 1, 0}, {3 * batch, 2*batch + 1, batch + 7}, {200_000, 3 * batch, 3 * batch}} {
		fill(t, p, c.records, c.memories, c.recent)
		start := time.Now()
		got, err := p.Clients()
		t.Logf("%d rows took %v", c.records+2*c.memories, time.Since(start))
		if err != nil {
			t.Fatal(err)
		}
		of := sock.Held{Rows: c.memories, Room: DefaultSizes.Affinity, Timed: true, Recent: c.recent}
		rules := map[uint32]int{}
		for i := range c.records {
			rules[uint32(i%3)]++
		}
		want := map[string]sock.Held{"records": {Rows: c.records, Room: DefaultSizes.Records, Rules: rules}, "affinity": of, "flows": of}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("counted %+v, want %+v", got, want)
		}
	}
}
