// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"iter"
	"maps"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/driver/webhook"
)

// lbcf §3.3: whatever befalls each of the exchanges with HAProxy that a call needs, Fail means that nothing was done, and Succ that it
// is so. Asked again, it is done.
func TestEveryMishapIsToldTruly(t *testing.T) {
	t.Parallel()
	k, want := drawn("web", "192.0.2.1:80"), wish{weight: 5, maxConn: 9}
	befores := map[string]*served{
		"absent": nil, "other": {address: k.address, weight: 1}, "drained": {address: k.address, weight: 5, admin: forcedDrain},
		"moved": {address: drawn("web", "192.0.2.2:80").address, weight: 5, maxConn: 9}, "as-wanted": {address: k.address, weight: 5, maxConn: 9},
		"checked": {address: k.address, weight: 5, maxConn: 9, interval: 1000, agentPort: 10, checked: true},
	}
	checked := wish{weight: 5, maxConn: 9, interval: time.Second}
	driver := newDriver(t, newModel())
	for name, before := range befores {
		for _, wanted := range []*wish{&want, nil, &checked} {
			for mishaps := range sequences([]fault{fine, unreachable, deaf, mute, halfway, reluctant, unwilling}, 3) {
				m := newModel()
				if before != nil {
					copied := *before
					m.servers[ours(k)] = &copied
				}
				driver.o.Runtime = m
				picture, left := m.picture(), mishaps[:]
				m.fault = func() fault {
					if len(left) == 0 {
						return fine
					}
					next := left[0]
					left = left[1:]
					return next
				}
				status, msg, err := call(t, driver, k, wanted)
				switch {
				case err != nil:
				case status == webhook.Fail && !maps.Equal(picture, m.picture()):
					t.Fatalf("%s, %v, mishaps %v: Fail (%s), although it is %v now", name, wanted, mishaps, msg, m.picture())
				case status == webhook.Succ && m.picture()[ours(k)] != pictureOf(k, wanted):
					t.Fatalf("%s, %v, mishaps %v: Succ, although it is %v", name, wanted, mishaps, m.picture())
				}
				left = nil
				if status, msg, err := call(t, driver, k, wanted); err != nil || status != webhook.Succ || m.picture()[ours(k)] != pictureOf(k, wanted) {
					t.Fatalf("%s, %v, mishaps %v: asked again it is %s (%s), %v, and %v", name, wanted, mishaps, status, msg, err, m.picture())
				}
				if len(m.mistakes) > 0 {
					t.Fatalf("HAProxy does not know %q", m.mistakes)
				}
			}
		}
	}
}

// call ensures a server, or deregisters it if nothing is wanted.
func call(t *testing.T, d *Driver, k key, wanted *wish) (webhook.Status, string, error) {
	if wanted == nil {
		a, err := d.DeregisterBackend(t.Context(), request(k, wish{}, false))
		return a.Status, a.Msg, err
	}
	a, err := d.EnsureBackend(t.Context(), request(k, *wanted, false))
	return a.Status, a.Msg, err
}

// sequences yields all sequences of n faults.
func sequences(of []fault, n int) iter.Seq[[]fault] {
	return func(yield func([]fault) bool) {
		total := 1
		for range n {
			total *= len(of)
		}
		for number := range total {
			sequence := make([]fault, n)
			for i := range sequence {
				sequence[i] = of[number%len(of)]
				number /= len(of)
			}
			if !yield(sequence) {
				return
			}
		}
	}
}
