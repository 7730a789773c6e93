// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// writing is a write that is under way.
type writing struct {
	guard *Guard
	op    string
	began time.Time
	looks int
	timer *time.Timer
}

// bounded makes a write, and has the Guard fail if it hangs: whoever waits for it cannot be helped, and the others shall hear of it. What the
// write gives, once it does, is checked as ever.
func (v view) bounded(op string, write func() error) error {
	defer v.guard.begin(op)()
	return v.write(op, write())
}

// begin looks at a write from time to time, until end is called.
func (g *Guard) begin(op string) (end func()) {
	w := &writing{guard: g, op: op, began: time.Now()}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes[w] = struct{}{}
	w.timer = time.AfterFunc(lookEvery, w.look)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.writes, w)
		w.timer.Stop()
	}
}

func (w *writing) look() {
	w.guard.mu.Lock()
	defer w.guard.mu.Unlock()
	if _, underWay := w.guard.writes[w]; !underWay {
		return
	}
	if w.looks++; w.looks < hangLooks {
		w.timer.Reset(lookEvery)
		return
	}
	w.guard.fail(&Error{Path: w.guard.path, Op: w.op, Remedy: remedyHang, Err: ErrHangs})
}

// Waits is for how long the oldest write that is under way has been waited for, 0 if none is.
func (g *Guard) Waits() (longest time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for w := range g.writes {
		longest = max(longest, time.Since(w.began))
	}
	return longest
}
