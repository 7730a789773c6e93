// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// stallWithin is how long a leader may commit nothing of what it was asked to.
	stallWithin = 5 * time.Second
	// stallLooks is how often it is looked at meanwhile. Looks are counted, and not time: a process that stood still did not stall.
	stallLooks = 10
	// snapshotWithin is how long a follower may take to restore a snapshot once it has all of it. Nothing is heard of it meanwhile.
	snapshotWithin = time.Minute
)

// ErrStalled ends a member that leads and commits nothing.
var ErrStalled = errors.New("this member led, and committed nothing that was asked of it: it ended so that others lead and it starts clean; " +
	"if that comes again, look at the disks of all members and report it with the log")

// stallWithin is longer with slow elections: a transfer that comes to nothing stops proposals for one.
func (n *Node) stallWithin() time.Duration { return max(stallWithin, 3*n.o.Tuning.Election) }

// progress is what moves while a leader gets anywhere.
type progress struct {
	commit, applied uint64
	held            uint64 // by followers, as far as is known
	sent, read      uint64 // of snapshots, in bytes
}

func (n *Node) progress(term uint64) progress {
	read, _ := n.fsm.reads()
	return progress{n.raft.CommitIndex(), n.fsm.position(), n.seen.held(term), n.seen.sending.bytes(), read}
}

// watchTerm ends this member when it leads in a term that does not open, or in which nothing is committed of what was asked: whatever the
// cause, a leader whose heartbeats arrive would keep everybody else from leading.
func (n *Node) watchTerm(ctx context.Context, term uint64) {
	look := time.NewTicker(n.stallWithin() / stallLooks)
	defer look.Stop()
	probing, probed := false, make(chan struct{}, 1)
	last, quiet, lags := n.progress(term), 0, lagging{}
	lags.look(n, term)
	for quiet < stallLooks {
		select {
		case <-ctx.Done():
			return
		case <-n.refused: // what is refused at once waits for nothing: this does
			if !probing {
				probing = true
				go func() {
					n.probe(ctx)
					probed <- struct{}{}
				}()
			}
			continue
		case <-probed:
			probing = false
			continue
		case <-look.C:
		}
		lags.look(n, term)
		now := n.progress(term)
		asked := probing || n.LeadingTerm() == 0 || n.queue.busy()
		if !asked || now != last || n.seen.sending.underWay(snapshotWithin) || len(n.restoring) > 0 {
			last, quiet = now, 0
			continue
		}
		quiet++
	}
	waits := n.guard.Waits().Round(time.Second)
	n.log.Error("leadership given up", "server", n.id, "term", term, "why", "nothing asked of it was committed", "within", n.stallWithin(),
		"open", n.LeadingTerm() != 0, "commit", last.commit, "applied", last.applied, "disk", waits)
	if waits > 0 {
		n.fail(fmt.Errorf("term %d, and a write in %s has not come back for %s: %w", term, n.o.Path, waits, ErrStalled))
	}
	n.fail(fmt.Errorf("term %d: %w", term, ErrStalled))
}

// probe returns once something was committed that this leader was asked for.
func (n *Node) probe(ctx context.Context) {
	for n.awaitBarrier(ctx) != nil {
		select {
		case <-ctx.Done():
			return
		case <-time.After(n.o.Tuning.Election):
		}
	}
}

// refuses notes that the library refused something for a transfer of the leadership.
func (n *Node) refuses(err error) {
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		select {
		case n.refused <- struct{}{}:
		default: // it is known
		}
	}
}
