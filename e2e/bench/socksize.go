// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"fairlead.io/fairlead/api/desired"
	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/dataplane/sock"
	"fairlead.io/fairlead/dataplane/sock/program"
	"fairlead.io/fairlead/fsm"
)

// Sizes of balancing §23 and §24, row 17.
const (
	syncServices   = 5_000
	syncEndpoints  = 100 // of each
	policies       = 65_535
	policyBackends = 4 // of each
	backendsInAll  = 10_000
	syncChanges    = 60
)

// told is what a host is told, item by item, as a member streams it.
type told struct {
	t      *bench
	steps  desired.Steps
	values map[string][]byte
	digest desired.Digest
	index  fsm.Index
}

// message is a step that puts items in.
func (w *told) message(items map[string][]byte) *fairleadv1.SyncResponse {
	var pieces desired.Pieces
	for key, value := range items {
		if old, there := w.values[key]; there {
			w.digest = w.digest.Minus(key, old)
		}
		w.values[key], w.digest = value, w.digest.Plus(key, value)
		if err := pieces.Put(key, value); err != nil {
			w.t.Fatal(err)
		}
	}
	changes, err := pieces.Bytes()
	if err != nil {
		w.t.Fatal(err)
	}
	w.index++
	return &fairleadv1.SyncResponse{
		Revision: desired.RevisionMessage(fsm.Revision{Epoch: 1, Index: w.index}), Full: w.index == 1, Changes: changes, Digest: w.digest[:],
		Node: desired.NodeMessage("bench", nil, nil),
	}
}

// synced is how long a host takes for what it is told: from the message to the last row in the tables. Items are made by number.
func synced(t *bench, sizes program.Sizes, items int, item func(i int, changed bool) (key string, value []byte)) figures {
	lab := newSockLabOf(t, sizes)
	resolution, err := sock.Over(sock.Options{Config: sock.Config{Node: "node-0"}, Room: sizes.Capacity}, lab.program)
	if err != nil {
		t.Fatal(err)
	}
	w := &told{t: t, values: map[string][]byte{}}
	all := map[string][]byte{}
	for i := range items {
		key, value := item(i, false)
		all[key] = value
	}
	first := w.message(all)
	clear(all)
	step := func(m *fairleadv1.SyncResponse) (decoded, all time.Duration) {
		begin := time.Now()
		if whole, err := w.steps.Add(m); err != nil || !whole {
			t.Fatal(whole, err)
		}
		decoded = time.Since(begin)
		if _, err := resolution.Apply(context.Background(), w.steps.State); err != nil {
			t.Fatal(err)
		}
		return decoded, time.Since(begin)
	}
	begin := memoryNow()
	decoded, took := step(first)
	first = nil
	detail := map[string]any{
		"items": items, "decoded_s": decoded.Seconds(), "peak_heap_mb": peakHeapMB(), "heap_before_mb": begin, "heap_mb": memoryNow(), "process": usageAlone(os.Getpid()),
	}
	var changes []float64
	for turn := range syncChanges {
		i := turn / 2 * 7919 % items
		key, value := item(i, turn%2 == 0)
		_, one := step(w.message(map[string][]byte{key: value}))
		changes = append(changes, milliseconds(one))
	}
	detail["one_change_ms"] = spread(changes)
	runtime.KeepAlive(resolution)
	return figures{samples: []float64{took.Seconds()}, detail: detail}
}

// memoryNow is what this process holds that is needed, in MB; the rest is given back.
func memoryNow() float64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// peakHeapMB is the most that the heap ever took of the machine.
func peakHeapMB() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapSys) / (1 << 20)
}

// sockSync is of 5,000 Services with 100 endpoints each. An endpoint less, or again, is one change.
func sockSync(t *bench) figures {
	sizes := program.DefaultSizes
	sizes.Slots = 2 * syncServices * syncEndpoints
	return synced(t, sizes, syncServices, func(i int, changed bool) (string, []byte) {
		port := desired.Port{Protocol: 6, Number: 80}
		s := desired.Service{
			Name: fmt.Sprintf("bench/s%d", i), Frontends: []desired.Frontend{{Name: "http", Port: port}},
			Addresses: []netip.Addr{netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)})},
		}
		for e := range syncEndpoints {
			if changed && e == 0 {
				continue
			}
			s.Endpoints = append(s.Endpoints, desired.Endpoint{
				Address: netip.AddrFrom4([4]byte{10, byte(e), byte(i >> 8), byte(i)}), Node: fmt.Sprintf("node-%d", (i+e*31)%500), Ready: true, Serving: true,
				Ports: []desired.EndpointPort{{Name: "http", Port: desired.Port{Protocol: 6, Number: 8080}}},
			})
		}
		value, err := desired.ServiceValue(s)
		if err != nil {
			t.Fatal(err)
		}
		return desired.ServiceKey(s.Name), value
	})
}

// sockPolicies is of 65,535 policies, each with a place of its own and four backends of 10,000 that there are, in tables of the default size.
func sockPolicies(t *bench) figures {
	return synced(t, program.DefaultSizes, policies, func(i int, changed bool) (string, []byte) {
		r := desired.Policy{
			Name: fmt.Sprintf("BalancingPolicy/p%d", i), Number: uint32(i + 1), Created: int64(i), EveryNode: true, Mode: desired.ToPods,
			Captures: []desired.Capture{{Address: netip.AddrFrom4([4]byte{169, 254, byte(i >> 8), byte(i)}), Port: desired.Port{Protocol: 6, Number: 80}, Target: 8080}},
		}
		for e := range policyBackends {
			b := (i + e*(1+i/backendsInAll)) % backendsInAll
			if changed && e == 0 {
				b = (b + 5000) % backendsInAll
			}
			r.Backends = append(r.Backends, desired.PolicyBackend{
				Address: netip.AddrFrom4([4]byte{10, 0, byte(b >> 8), byte(b)}), Node: fmt.Sprintf("node-%d", b%500), Ready: true,
			})
		}
		value, err := desired.PolicyValue(r)
		if err != nil {
			t.Fatal(err)
		}
		return desired.PolicyKey(r.Name), value
	})
}
