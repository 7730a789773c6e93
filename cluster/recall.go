// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// A member whose floor is gone, since its machine booted, cannot tell by itself whether its folder is the one that it left. Until the others
// said what they remember of it, it neither votes nor takes entries (observer.mute).

const (
	// recallWithin bounds how long it waits for more than a majority needs. A group of three in which one is down would stop until that one is
	// back otherwise, as often as a machine of the other two boots.
	recallWithin = 10 * time.Second
	// atLeastWithin bounds how long a member gives no vote for less than others said that they hold: who said so may be gone for good, and nobody else
	// may ever have had what he held.
	atLeastWithin = time.Minute
	// recallEvery is how often those are asked who did not answer yet.
	recallEvery = 250 * time.Millisecond
	// recallCall bounds one question.
	recallCall = 2 * time.Second
)

// errAtLeast says that a member gives no vote to somebody who holds less than it was told that others hold.
var errAtLeast = errors.New("this server gives no vote yet for less than others held when its machine had booted: who knows what it acknowledged may be away")

// errRecalling says that a member does not know yet whether its folder is an older one.
var errRecalling = errors.New("this server does not vote or take entries yet: its machine booted, and it asks the others first whether its folder is an older one")

// recalled is how many of a number of voters, one of them the server itself, have to have said what they know of it. All meet every majority
// that it was a part of; with fewer it is the last that a majority lacks.
func recalled(voters int) (all, fewest int) {
	quorum := voters/2 + 1
	return max(voters-quorum+1, 0), quorum - 1
}

// recallFrom are the voters that are asked: those of the newest configuration in the folder, or the first members where there is none.
func (n *Node) recallFrom() (others []Peer) {
	for _, s := range n.found.Configuration.Servers {
		if s.ID != n.id && s.Suffrage == raft.Voter {
			others = append(others, Peer{ID: string(s.ID), Name: NameOf(string(s.ID)), Address: string(s.Address)})
		}
	}
	if len(n.found.Configuration.Servers) > 0 || n.o.Bootstrap == nil {
		return others
	}
	for _, m := range n.o.Bootstrap.Members {
		if m.Name != n.o.Name {
			others = append(others, m)
		}
	}
	return others
}

// needsRecall tells whether the others have to be asked before this member takes part.
func (n *Node) needsRecall() bool {
	return n.o.Floor != nil && !n.o.Floor.Known() && !n.o.Fresh && n.o.Recall != nil && len(n.recallFrom()) > 0
}

// runRecall asks the others, until enough of them said what they know of this server.
func (n *Node) runRecall(ctx context.Context) {
	if !n.seen.mute.Load() {
		return
	}
	waiting := n.recallFrom()
	all, fewest := recalled(len(waiting) + 1)
	heard, others, since := heardFrom{}, len(waiting), time.Time{}
	for {
		var why error
		waiting, why = n.recallOnce(ctx, waiting, &heard)
		answered := heard.answered
		if errors.Is(why, ErrRolledBack) {
			n.fail(why)
			return
		}
		if answered >= fewest && since.IsZero() {
			since = time.Now()
		}
		late := answered >= fewest && time.Since(since) >= recallWithin
		if answered >= all || late {
			if answered < all {
				n.log.Warn("takes part without having heard from all who may know more of this server than its folder", "server", n.id,
					"answered", answered, "silent", names(waiting), "within", recallWithin)
			}
			if answered < others {
				n.seen.atLeast.Store(&heard.held)
			}
			n.seen.mute.Store(false)
			n.awaitAtLeast(ctx)
			return
		}
		n.complain("waits to hear from other members whether its data folder is an older one", cmp.Or(why, fmt.Errorf("no answer of %s", names(waiting))))
		select {
		case <-ctx.Done():
			return
		case <-time.After(recallEvery):
		}
	}
}

// awaitAtLeast begins the floor once this member has what it asks of candidates. One that starts again before that asks the others again.
func (n *Node) awaitAtLeast(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, atLeastWithin, errAtLeast)
	defer cancel()
	for n.seen.suffices(store.Position{}) != nil {
		select {
		case <-time.After(recallEvery):
			continue
		case <-ctx.Done():
		}
		if !errors.Is(context.Cause(ctx), errAtLeast) {
			return
		}
		n.log.Warn("votes for less than others held who are not heard of", "server", n.id, "held", n.seen.atLeast.Load(), "holds", n.seen.holds(), "within", atLeastWithin)
		n.seen.atLeast.Store(nil)
	}
	n.beginFloor()
}

// heardFrom is how many voters said what they know of this server, and what the furthest of them holds.
type heardFrom struct {
	answered int
	held     store.Position
}

// recallOnce asks each once, side by side, and gives those who did not answer. One that knows more than this folder ends the member.
func (n *Node) recallOnce(ctx context.Context, peers []Peer, heard *heardFrom) (silent []Peer, why error) {
	type answer struct {
		known Known
		err   error
	}
	answers := make([]chan answer, len(peers))
	for i, p := range peers {
		answers[i] = make(chan answer, 1)
		go func() {
			asking, cancel := context.WithTimeout(ctx, recallCall)
			defer cancel()
			known, err := n.o.Recall(asking, p)
			answers[i] <- answer{known, err}
		}()
	}
	for i, p := range peers {
		a := <-answers[i]
		if a.err != nil {
			silent, why = append(silent, p), cmp.Or(why, fmt.Errorf("ask %s: %w", p.Name, a.err))
			continue
		}
		heard.answered++
		if heard.held.Before(a.known.Held) {
			heard.held = a.known.Held
		}
		if lack := a.known.promises().Lack(n.found.Promises()); lack != "" {
			return nil, n.rolledBack(lack + ", says " + p.Name)
		}
	}
	return silent, why
}

// beginFloor has this member keep a floor. Without a place for it the others are asked at each start.
func (n *Node) beginFloor() {
	if err := n.o.Floor.Begin(); err != nil {
		n.log.Warn("no floor: this member asks the others at each start what they know of it", "server", n.id, "error", err)
	}
}

// standOnFloor compares the folder with the floor, if there is one, and has the floor raised by what is kept from now on. What was cut as the
// folder was checked shall not have lowered it.
func (n *Node) standOnFloor() error {
	f := n.o.Floor
	if f == nil {
		return nil
	}
	kept, promised := n.found.Promises(), f.Promises()
	// A bootstrap that was interrupted is undone, and told nobody anything: an election begins with term 2.
	if undone := n.found.Empty() && promised == (store.Promises{Term: 1}); f.Known() && !undone {
		if lack := promised.Lack(kept); lack != "" {
			return n.rolledBack(lack)
		}
	}
	f.Hold(kept)
	n.guard.Raise(f)
	if !n.needsRecall() { // one that cannot be kept any more may be an old one
		n.beginFloor()
	}
	n.seen.mute.Store(n.needsRecall())
	return nil
}

// rolledBack is the error that ends this member since its folder is older than what it promised.
func (n *Node) rolledBack(lack string) error {
	return &store.Error{Path: n.o.Path, Op: "check the log", Remedy: store.RemedyReplace, Err: fmt.Errorf("%w: %s", ErrRolledBack, lack)}
}

// Remembers is what this member knows of a server, as its end of Options.Recall.
func (n *Node) Remembers(id string) Known {
	k := n.seen.memory.of(raft.ServerID(id))
	k.Held = n.seen.holds()
	return k
}

func names(peers []Peer) string {
	var out []string
	for _, p := range peers {
		out = append(out, p.Name)
	}
	return strings.Join(out, ", ")
}
