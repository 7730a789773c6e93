// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"time"

	"fairlead.io/fairlead/fsm"
)

// How often a driver is asked that is at it and does not say when to ask again: soon at first, and more rarely by a
// step each time.
const (
	pollFirst = time.Second
	pollStep  = 500 * time.Millisecond
	pollMost  = 10 * time.Second
)

// retryAfter is how long a line rests after an outcome. After an unknown outcome the next call goes out at once, the
// first time. What a driver says itself counts as the least, and so does what this member was told. With LBCF's formula
// everything is as it says.
func (o *operator) retryAfter(l *line, r result) time.Duration {
	polls := l.polls
	l.polls = 0
	switch r.answer.Result {
	case fsm.ResultSucceeded:
		l.failures = 0
		if !l.unsettled.IsZero() && !o.settled(r) { // to be repeated once it can be final
			return l.ended + r.settle - o.c.Clock.Now()
		}
		return 0
	case fsm.ResultRunning:
		l.failures, l.polls = 0, polls+1
		return max(o.poll(l, r.answer.RetryAfter > 0), o.c.Timing.RetryLeast, r.answer.RetryAfter)
	case fsm.ResultUnknown:
		if l.failures++; l.failures == 1 && o.c.Timing.RetryStep == 0 {
			return max(o.c.Timing.RetryLeast, r.answer.RetryAfter)
		}
	default:
		l.failures++
	}
	return max(o.backoff(l.failures), o.c.Timing.RetryLeast, r.answer.RetryAfter)
}

// poll is how long to wait for a driver that is at it, and said when to be asked or not. In LBCF's formula that counts once,
// however often: a failure afterwards is the second.
func (o *operator) poll(l *line, hinted bool) time.Duration {
	switch {
	case o.c.Timing.RetryStep > 0:
		l.failures = 1
		return o.backoff(1)
	case hinted:
		return o.c.Timing.RetryFloor
	}
	return max(o.c.Timing.RetryFloor, min(pollFirst+time.Duration(l.polls-1)*pollStep, pollMost))
}

// backoff is how long to wait after so many failures in a row. It doubles after every second one: among some hundred
// lines whose driver fails a third of calls there is one that fails eight times in a row, and shall not wait for minutes.
// Half of it is at random, so that what failed together does not come back together. LBCF's formula has neither.
func (o *operator) backoff(failures int) time.Duration {
	wait := o.c.Timing.RetryCap
	if step := o.c.Timing.RetryStep; step > 0 {
		if shift := failures - 1; shift < 20 {
			wait = min(step<<shift, wait)
		}
		return wait
	}
	if shift := (failures - 1) / 2; shift < 20 {
		wait = min(o.c.Timing.RetryFloor<<shift, wait)
	}
	return wait/2 + time.Duration(o.c.Random.Int64N(int64(wait/2)+1))
}
