// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/driver/webhook"
	"fairlead.io/fairlead/internal/testkit"
)

// together is calls that come at the same time: whoever leads does them in rounds, in their order.
func (w *history) together(t *rapid.T) {
	type asking struct {
		*job
		want *wish
	}
	var asks []asking
	about := map[key]int{}
	for range rapid.IntRange(2, 6).Draw(t, "calls") {
		k := drawKey(t)
		var want *wish
		if rapid.Bool().Draw(t, "ensure") {
			drawn := drawWish(t)
			want = &drawn
		}
		about[k]++
		asks = append(asks, asking{&job{ctx: t.Context(), key: k, want: want, done: make(chan struct{})}, want})
		w.driver.waiting = append(w.driver.waiting, asks[len(asks)-1].job)
	}
	w.drawFaults(t)
	before := w.model.picture()
	for len(w.driver.waiting) > 0 {
		w.driver.carryOut(w.driver.takeJobs())
	}
	w.faults = nil
	if err := w.book.Save(); err != nil {
		t.Fatal(err)
	}
	for _, a := range asks {
		answer, err := answer(a.err)
		same := before[ours(a.key)] == w.model.picture()[ours(a.key)]
		switch {
		case !a.ended:
			t.Fatalf("nobody answers for %s", ours(a.key))
		case err == nil && answer.Status == webhook.Fail:
			if about[a.key] == 1 && !same {
				t.Fatalf("Fail (%s) although %s was %q and is %q", answer.Msg, ours(a.key), before[ours(a.key)], w.model.picture()[ours(a.key)])
			}
		default:
			w.last[a.key] = &asked{wish: a.want, sure: err == nil && a.running == ""}
		}
	}
}

// Calls that wait while another is carried out share one look and one line of commands; each hears of its own server.
func TestCallsThatComeAtTheSameTimeShareALook(t *testing.T) {
	t.Parallel()
	m := newModel()
	d := newDriver(t, m)
	const n = 100
	d.turn <- struct{}{} // HAProxy is busy
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			backend := "web"
			if i%10 == 0 {
				backend = "fixed" // takes none
			}
			k := drawn(backend, fmt.Sprintf("192.0.2.%d:80", i+1))
			a, err := d.EnsureBackend(t.Context(), request(k, wish{weight: 1 + i, maxConn: i}, false))
			switch {
			case err != nil || (a.Status == webhook.Succ) != (backend == "web"):
				t.Errorf("%s: %+v, %v", ours(k), a, err)
			case backend == "fixed" && !strings.Contains(a.Msg, "fl-"+k.address.Addr().String()+"_80 of backend fixed"):
				t.Errorf("%s hears %q", ours(k), a.Msg)
			}
		})
	}
	testkit.Until(t, "all wait", func() bool {
		d.waitingMu.Lock()
		defer d.waitingMu.Unlock()
		return len(d.waiting) == n
	})
	<-d.turn
	wait.Wait()
	for i := range n {
		k := drawn("web", fmt.Sprintf("192.0.2.%d:80", i+1))
		if want := pictureOf(k, &wish{weight: 1 + i, maxConn: i}); i%10 != 0 && m.picture()[ours(k)] != want {
			t.Errorf("%s is %q, not %q", ours(k), m.picture()[ours(k)], want)
		}
	}
	if m.asked > n/2 { // those that are refused are told by themselves, to hear why
		t.Errorf("%d calls asked HAProxy %d times", n, m.asked)
	}
}

// A call that follows from an old look is done right although somebody changed the server meanwhile.
func TestAnOldLookMisleadsNobody(t *testing.T) {
	t.Parallel()
	k := drawn("web", "192.0.2.1:80")
	for name, hand := range map[string]func(*model){
		"deleted": func(m *model) { delete(m.servers, ours(k)) },
		"changed": func(m *model) {
			m.servers[ours(k)] = &served{address: drawn("web", "192.0.2.9:80").address, weight: 9, admin: forcedDrain}
		},
		"reloaded": func(m *model) {
			m.restart()
			delete(m.servers, ours(k))
		},
		"connections": func(m *model) { m.servers[ours(k)] = &served{address: k.address, weight: 1, sessions: 1} },
	} {
		for _, want := range []*wish{{weight: 3, maxConn: 4}, nil} {
			m := newModel()
			d := newDriver(t, m)
			if status, msg, err := call(t, d, k, &wish{weight: 3}); err != nil || status != webhook.Succ {
				t.Fatalf("%s, %s, %v", status, msg, err)
			}
			hand(m)
			status, msg, err := call(t, d, k, want)
			wanted := webhook.Succ
			if want == nil && name == "connections" {
				wanted = webhook.Running
			}
			if err != nil || status != wanted || wanted == webhook.Succ && m.picture()[ours(k)] != pictureOf(k, want) {
				t.Errorf("%s, then wanted %v: %s (%s), %v, and it is %q", name, want, status, msg, err, m.picture()[ours(k)])
			}
		}
	}
}

// What somebody has who leads ends nobody else's call, and a call whose caller goes before it is begun never is.
func TestACallerThatGoesTakesNobodyWithIt(t *testing.T) {
	t.Parallel()
	m := newModel()
	d := newDriver(t, m)
	gone, leave := context.WithCancel(t.Context())
	first := drawn("web", "192.0.2.1:80")
	second := drawn("web", "192.0.2.2:80")
	m.fault = func() fault { // HAProxy is being asked for both
		leave()
		return fine
	}
	d.waiting = append(d.waiting,
		&job{ctx: gone, key: first, want: &wish{weight: 1}, done: make(chan struct{})},
		&job{ctx: t.Context(), key: second, want: &wish{weight: 1}, done: make(chan struct{})})
	jobs := d.takeJobs()
	d.carryOut(slices.Clone(jobs))
	if !errors.Is(jobs[0].err, context.Canceled) || jobs[1].err != nil {
		t.Errorf("they hear %v and %v", jobs[0].err, jobs[1].err)
	}
	if got, want := m.picture(), map[string]string{ours(second): pictureOf(second, &wish{weight: 1})}; !maps.Equal(got, want) {
		t.Errorf("HAProxy has %v", got)
	}
}
