// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// errOlder is what a server hears whose disk is an older one. It travels as a text.
var errOlder = errors.New("this server once held more than it does now: its disk was rolled back, and it is not heard")

// hears gives a peer's error, and ends this member if it says that the disk of this one is an older one.
func (o *observer) hears(id raft.ServerID, err error) error {
	if err != nil && strings.Contains(err.Error(), errOlder.Error()) {
		o.outdated(fmt.Sprintf("%s says: %v", NameOf(string(id)), err))
	}
	return err
}

// takes tells whether a message may get to the library: one that is for this server, of somebody whose disk is not known to be an older one.
// What others say of themselves is remembered.
func (o *observer) takes(command any) error {
	if err := readAddressee(command, o.self); err != nil {
		return err
	}
	from := header(command)
	o.regains(command)
	if from != nil && (o.memory.less(command) || o.distrusted(raft.ServerID(from.ID)) != "") {
		return fmt.Errorf("%w (%s of %s)", errOlder, from.ID, o.memory.of(raft.ServerID(from.ID)).Last)
	}
	o.memory.asks(command)
	if o.mute.Load() {
		return errRecalling
	}
	if last, _, ok := candidacy(command); ok {
		return o.suffices(last)
	}
	return nil
}

// holds is where our log ends, or the newest snapshot if that is further.
func (o *observer) holds() store.Position {
	index, term := o.snapshot()
	last := store.Position{Term: term, Index: index}
	var entry raft.Log
	if library := o.library.Load(); library != nil && o.entry(library.LastIndex(), &entry) == nil {
		if own := (store.Position{Term: entry.Term, Index: entry.Index}); last.Before(own) {
			last = own
		}
	}
	return last
}

// suffices is an error if a log that ends at an entry has less than atLeast. That bound ends once our own log reaches it: from then on the library
// gives no vote for less. Of what a member forgot that acknowledged it, one of those who were asked holds all that was committed.
func (o *observer) suffices(last store.Position) error {
	bound := o.atLeast.Load()
	switch {
	case bound == nil || !last.Before(*bound):
		return nil
	case !o.holds().Before(*bound):
		o.atLeast.CompareAndSwap(bound, nil)
		return nil
	}
	return fmt.Errorf("%w (%s, and not %s)", errAtLeast, *bound, last)
}

// lost tells whether a follower that ends at an index lacks something committed that it held before. What it held was replaced by another
// leader's entries, maybe, unless it is in our log and committed: that is for good.
func (o *observer) lost(held store.Position, has uint64) bool {
	if has >= held.Index {
		return false
	}
	_, commit := o.last()
	if library := o.library.Load(); library != nil {
		commit = max(commit, library.CommitIndex())
	}
	if has >= commit {
		return false
	}
	var ours raft.Log
	return o.entry(held.Index, &ours) == nil && ours.Term == held.Term
}

// distrust notes that the disk of a server is an older one. Nothing that it answers counts from then on.
func (o *observer) distrust(id raft.ServerID, had, has uint64) {
	why := fmt.Sprintf("has a disk that was rolled back and is not counted: it acknowledged entry %d, and holds %d; move its data folder away, and it joins again as a new server", had, has)
	o.mu.Lock()
	_, known := o.older[id]
	if !known {
		o.older[id] = why
	}
	o.mu.Unlock()
	if !known {
		o.rolledBack(id, why)
	}
}

// regains has a candidate count again that holds no less than it once did: the right folder was put in its place, or another leader brought it
// what it lacked. Whoever is not counted hears of no leader here, so that he asks for votes. His answers are held against what he held as before.
func (o *observer) regains(command any) {
	last, _, ok := candidacy(command)
	if !ok {
		return
	}
	id := raft.ServerID(header(command).ID)
	if last.Before(o.memory.of(id).Last) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.older, id)
}

// distrusted tells why a server is not counted, empty if it is.
func (o *observer) distrusted(id raft.ServerID) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.older[id]
}

// trusts is an error if a server is not counted.
func (o *observer) trusts(id raft.ServerID) error {
	if why := o.distrusted(id); why != "" {
		return fmt.Errorf("%s %s", id, why)
	}
	return nil
}

// vote asks for one, for a log that ends at an entry. Whoever gives it and once held more than that has an older disk: its vote says nothing.
func (o *observer) vote(id raft.ServerID, last store.Position, ask func() error, granted *bool) error {
	if err := o.closed(); err != nil {
		return err
	}
	if o.mute.Load() {
		return errRecalling
	}
	if err := o.suffices(last); err != nil {
		return err
	}
	held := o.memory.of(id).Last
	if err := o.hears(id, ask()); err != nil {
		return err
	}
	if *granted && last.Before(held) {
		*granted = false
		o.distrust(id, held.Index, last.Index)
	}
	if *granted {
		*granted = o.trusts(id) == nil
	}
	return nil
}

// raise has a candidate name its newest snapshot where that is further than what the library takes for the end of the log: a log that the
// snapshot contradicts is cut, which the library does not know until there is an entry behind it (store.Matched).
func (o *observer) raise(term, index *uint64) {
	last, in := o.snapshot()
	if (store.Position{Term: *term, Index: *index}).Before(store.Position{Term: in, Index: last}) {
		*term, *index = in, last
	}
}
