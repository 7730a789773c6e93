// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"sync"
)

// Urgency says in which of the two queues a proposal waits.
type Urgency uint8

const (
	// Bulk is for everything that may wait: its share of what is in flight is limited.
	Bulk Urgency = iota
	// Urgent goes first: nodes that died, withdrawals, leases, membership.
	Urgent
)

// String is the name in metrics and messages.
func (u Urgency) String() string {
	if u == Urgent {
		return "urgent"
	}
	return "bulk"
}

const (
	// MaxProposals bounds one call of Propose: they are applied in one go.
	MaxProposals = 1024
	// maxBatch bounds the commands that are put together in one entry, and with them how long the next urgent one
	// waits for an Apply. A single larger call goes alone.
	maxBatch = 256
	// maxBatchBytes does so for what is to be written, by everybody, before that Apply.
	maxBatchBytes = 1 << 20
	// maxWaitingBytes bounds what waits in a lane, beside the number of commands.
	maxWaitingBytes = 64 << 20
	// Entries in flight per lane. More than one keeps the disks of followers busy while the leader writes; few make
	// what arrives meanwhile share the next entry and its fsync.
	inFlightPerLane = 2
)

// request is one call of Propose on its way.
type request struct {
	proposals []Proposal
	bytes     int
	answer    chan answer // of capacity 1; written once
}

type answer struct {
	outcomes []Outcome
	err      error
}

// batch is what becomes one entry.
type batch struct {
	urgency    Urgency
	requests   []*request
	commands   int
	generation uint64 // of the queue, when it was taken
}

type lane struct {
	waiting  []*request
	commands int // waiting
	bytes    int // likewise
	limit    int
	inFlight map[*batch]struct{}
}

// queue holds proposals until their turn. It is closed while this member does not lead.
type queue struct {
	mu      sync.Mutex
	lanes   [2]lane
	leading bool // accept
	open    bool // hand out: the term's opening is done
	stopped bool
	// generation counts how often the queue was closed. What was taken before must not get into the log after that, if it is not there yet.
	generation uint64
	wake       chan struct{}
}

func newQueue(urgent, bulk int) *queue {
	q := &queue{wake: make(chan struct{}, 1)}
	q.lanes[Urgent] = lane{limit: urgent, inFlight: map[*batch]struct{}{}}
	q.lanes[Bulk] = lane{limit: bulk, inFlight: map[*batch]struct{}{}}
	return q
}

// put queues proposals.
func (q *queue) put(u Urgency, proposals []Proposal, bytes int) (*request, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[u]
	switch {
	case q.stopped:
		return nil, ErrStopped
	case !q.leading:
		return nil, ErrNotLeader
	case l.commands+len(proposals) > l.limit:
		return nil, fmt.Errorf("%s queue holds %d of at most %d commands: %w", u, l.commands, l.limit, ErrBusy)
	case l.bytes+bytes > maxWaitingBytes && l.bytes > 0:
		return nil, fmt.Errorf("%s queue holds %d of at most %d bytes: %w", u, l.bytes, maxWaitingBytes, ErrBusy)
	}
	r := &request{proposals: proposals, bytes: bytes, answer: make(chan answer, 1)}
	l.waiting = append(l.waiting, r)
	l.commands += len(proposals)
	l.bytes += bytes
	q.signal()
	return r, nil
}

// withdraw takes a request out again. It tells whether it still waited: then it was surely not proposed.
func (q *queue) withdraw(u Urgency, r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[u]
	for i, w := range l.waiting {
		if w == r {
			l.waiting = slices.Delete(l.waiting, i, i+1)
			l.commands -= len(r.proposals)
			l.bytes -= r.bytes
			return true
		}
	}
	return false
}

// take gives the next batch, urgent first, nil when nothing may go now.
func (q *queue) take() *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.open {
		return nil
	}
	for _, u := range []Urgency{Urgent, Bulk} {
		l := &q.lanes[u]
		if len(l.waiting) == 0 || len(l.inFlight) >= inFlightPerLane {
			continue
		}
		b := &batch{urgency: u, generation: q.generation}
		bytes := 0
		for _, r := range l.waiting {
			if len(b.requests) > 0 && (b.commands+len(r.proposals) > maxBatch || bytes+r.bytes > maxBatchBytes) {
				break
			}
			b.requests = append(b.requests, r)
			bytes += r.bytes
			b.commands += len(r.proposals)
		}
		clear(l.waiting[:len(b.requests)]) // a caller's commands may be many, and the next call is not soon
		l.waiting = l.waiting[len(b.requests):]
		l.commands -= b.commands
		l.bytes -= bytes
		l.inFlight[b] = struct{}{}
		return b
	}
	return nil
}

// finish answers a batch that was taken. A batch that was given up meanwhile stays as it was answered.
func (q *queue) finish(b *batch, answers func(i int, r *request) answer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.lanes[b.urgency]
	if _, ok := l.inFlight[b]; !ok {
		return
	}
	delete(l.inFlight, b)
	for i, r := range b.requests {
		r.answer <- answers(i, r)
	}
	q.signal()
}

// accept lets proposals in; begin lets them out.
func (q *queue) accept() { q.set(true, false) }
func (q *queue) begin()  { q.set(true, true) }

// lose closes the queue when leadership is lost, or the record becomes another one; what waited was surely not proposed.
func (q *queue) lose() {
	q.mu.Lock()
	q.generation++
	q.mu.Unlock()
	q.set(false, false)
	q.drop(ErrNotLeader)
}

// current tells whether the queue was not closed since a batch was taken.
func (q *queue) current(b *batch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.generation == b.generation
}

// stop closes the queue for good.
func (q *queue) stop() {
	q.mu.Lock()
	q.stopped = true
	q.mu.Unlock()
	q.set(false, false)
	q.drop(ErrStopped)
}

func (q *queue) set(leading, open bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.leading, q.open = leading, open
	q.signal()
}

func (q *queue) drop(why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for u := range q.lanes {
		for _, r := range q.lanes[u].waiting {
			r.answer <- answer{err: why}
		}
		q.lanes[u].waiting, q.lanes[u].commands, q.lanes[u].bytes = nil, 0, 0
	}
}

// abandon answers what is still in flight once nobody else will: the library drops what its last goroutine did not
// get to.
func (q *queue) abandon() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for u := range q.lanes {
		for b := range q.lanes[u].inFlight {
			delete(q.lanes[u].inFlight, b)
			for _, r := range b.requests {
				r.answer <- answer{err: fmt.Errorf("%w: %w", ErrUnknownOutcome, ErrStopped)}
			}
		}
	}
}

// depth is how many commands wait.
func (q *queue) depth(u Urgency) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.lanes[u].commands
}

// busy tells whether anything was handed out and is not answered yet.
func (q *queue) busy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lanes[Urgent].inFlight)+len(q.lanes[Bulk].inFlight) > 0
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}
