// SPDX-License-Identifier: Apache-2.0

package framelimit

import (
	"sync"
	"time"
)

// Budget is what all connections that come under one name may send: Rate a second, and AtOnce after a pause. A frame is one of it, a request
// eight and one for every 32 bytes of its header.
type Budget struct {
	Rate, AtOnce int
}

// forgetAfter is how long a name is remembered that has no connection any more. Its budget is whole again by then.
const forgetAfter = time.Minute

// account is what one name has left of its Budget.
type account struct {
	budget Budget

	mu   sync.Mutex
	left float64 // below zero where more was sent than it may
	at   time.Time

	// Under the lock of accounts.
	connections int
	idle        time.Time
}

// spend takes a cost out, whether it is there or not: what it is for was read already.
func (a *account) spend(cost int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill(now)
	a.left -= float64(cost)
}

// owes is how long it takes until nothing is owed any more; zero if nothing is.
func (a *account) owes(now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill(now)
	if a.left >= 0 {
		return 0
	}
	return time.Duration(-a.left / float64(a.budget.Rate) * float64(time.Second))
}

func (a *account) refill(now time.Time) {
	if passed := now.Sub(a.at); passed > 0 {
		a.left = min(a.left+passed.Seconds()*float64(a.budget.Rate), float64(a.budget.AtOnce))
		a.at = now
	}
}

// accounts are those of a port.
type accounts struct {
	mu    sync.Mutex
	named map[string]*account
	swept time.Time
}

// enter finds the account of a name for one more connection; leave has it have one less.
func (s *accounts) enter(name string, b Budget) *account {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	a := s.named[name]
	if a == nil {
		a = &account{budget: b, left: float64(b.AtOnce), at: now}
		s.named[name] = a
	}
	a.connections++
	return a
}

func (s *accounts) leave(a *account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.connections--
	a.idle = time.Now()
}

// sweep forgets those who are not here.
func (s *accounts) sweep(now time.Time) {
	if now.Sub(s.swept) < forgetAfter {
		return
	}
	s.swept = now
	for name, a := range s.named {
		if a.connections == 0 && now.Sub(a.idle) >= forgetAfter {
			delete(s.named, name)
		}
	}
}
