// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// observer is a transport that listens in. What passes through it is the only evidence of contact that there is: the
// library also counts a vote that it gave as contact with a leader, keeps the leader's commit index only as far as its
// own log reaches, and does not show what followers answer.
type observer struct {
	Transport
	self raft.ServerID
	rpcs chan raft.RPC
	late chan raft.RPC // heartbeats that wait with all else
	stop chan struct{}
	once sync.Once

	changed func()
	reach   *reach
	sending sending
	library atomic.Pointer[raft.Raft] // once it runs
	// snapshot gives the last entry of our newest snapshot, 0 for none.
	snapshot func() (index, term uint64)
	// reads tells whether this member is reading a snapshot, and has no record to lead with.
	reads func() bool
	// entry reads one of our log.
	entry func(index uint64, l *raft.Log) error
	// rolledBack is told of a server whose disk is an older one, once.
	rolledBack func(id raft.ServerID, why string)
	// outdated is told that others say so of this one's.
	outdated func(why string)
	memory   memory
	mute     atomic.Bool // nothing is taken or given but API calls: see recall.go
	// atLeast is what a candidate has to hold to have this member's vote, this one included; nil for no such bound.
	atLeast atomic.Pointer[store.Position]

	echo  *echo
	fresh freshness
	// open is the newest term of which this leader committed an entry.
	open atomic.Uint64

	mu      sync.Mutex
	heard   time.Time // when a leader of the current term surely was there last: it sent what it sent us after that
	term    uint64    // of the leader that spoke to us last
	commit  uint64    // newest commit index that a leader spoke of
	reached uint64    // the part of it that our own log had, when somebody was told last
	peers   map[raft.ServerID]*peerSeen
	next    chan struct{}              // is closed at the next answer of a follower, if somebody waits for it
	beat    *raft.AppendEntriesRequest // the library's newest heartbeat
	asked   map[raft.ServerID]bool     // who is sent one of ours
	older   map[raft.ServerID]string   // whose disk is an older one, and what shows it: nothing of theirs counts
}

// peerSeen is what a follower answered to us as its leader.
type peerSeen struct {
	at      time.Time      // when the newest message that it answered was sent: from when on it surely followed us
	took    time.Time      // when it answered last to what is no heartbeat
	term    uint64         // of our leadership when it answered
	lastLog uint64         // the newest entry that it acknowledged, once matched
	matched bool           // its log is known to be a prefix of ours
	held    store.Position // what it said it holds, in this term or before
}

func newObserver(t Transport, self raft.ServerID, changed func()) *observer {
	return &observer{
		Transport: t, self: self, changed: changed, snapshot: func() (index, term uint64) { return 0, 0 }, reads: func() bool { return false },
		rpcs: make(chan raft.RPC), late: make(chan raft.RPC), stop: make(chan struct{}), peers: map[raft.ServerID]*peerSeen{}, asked: map[raft.ServerID]bool{}, older: map[raft.ServerID]string{}, reach: newReach(), echo: newEcho(),
		entry: func(uint64, *raft.Log) error { return raft.ErrLogNotFound },
	}
}

// forward hands messages to the library one by one, as the library takes them, and looks at what it answers, until
// close.
func (o *observer) forward() {
	in := o.Transport.Consumer()
	for {
		select {
		case rpc := <-in:
			if err := o.takes(rpc.Command); err != nil {
				refuse(rpc, err)
				continue
			}
			o.enfranchise(rpc.Command)
			if !o.handOver(rpc) {
				return
			}
		case rpc := <-o.late:
			if !o.handOver(rpc) {
				return
			}
		case <-o.stop:
			return
		}
	}
}

// handOver has the library take a message, and passes its answer on. It tells whether to go on.
func (o *observer) handOver(rpc raft.RPC) bool {
	asked := rpc.Command
	switch m := asked.(type) {
	case *raft.AppendEntriesRequest:
		index, term := o.snapshot()
		rpc.Command = vouched(m, index, term)
	case *raft.InstallSnapshotRequest:
		if o.stale(m) {
			answer := have(rpc, m)
			o.respond(rpc.RespChan, answer)
			o.heardFrom(asked, answer)
			return true
		}
	case *raft.TimeoutNowRequest:
		if o.reads() {
			refuse(rpc, errLoading)
			return true
		}
	}
	answers, answer := relay(&rpc)
	select {
	case o.rpcs <- rpc:
	case <-o.stop:
		answer <- refusal(rpc.Command, raft.ErrRaftShutdown)
		return false
	}
	select {
	case r := <-answers:
		o.respond(answer, r)
		o.heardFrom(asked, r)
	case <-o.stop:
		answer <- refusal(rpc.Command, raft.ErrRaftShutdown)
		return false
	}
	return true
}

// SetHeartbeatHandler listens in on the heartbeats, which do not wait behind the log, as long as they change nothing.
//
// The library takes them in beside its main goroutine. One of a newer term makes it a follower of that term there, while a
// leader's main goroutine may be about to append commands: they would be stamped with the term of another leader, whose own
// entries then count as known here. Such a heartbeat waits its turn.
func (o *observer) SetHeartbeatHandler(handle func(raft.RPC)) {
	o.Transport.SetHeartbeatHandler(func(rpc raft.RPC) {
		if err := o.takes(rpc.Command); err != nil {
			refuse(rpc, err)
			return
		}
		if !o.follows(rpc.Command) {
			select {
			case o.late <- rpc:
			case <-o.stop:
				refuse(rpc, raft.ErrRaftShutdown)
			}
			return
		}
		answers, answer := relay(&rpc)
		handle(rpc)
		select {
		case r := <-answers:
			o.respond(answer, r)
			o.heardFrom(rpc.Command, r)
		default: // the library is shut down and answers nothing
		}
	})
}

// follows tells whether this server is a follower in the term of a heartbeat already.
func (o *observer) follows(command any) bool {
	beat, ok := command.(*raft.AppendEntriesRequest)
	library := o.library.Load()
	return ok && library != nil && library.State() == raft.Follower && library.CurrentTerm() == beat.Term
}

// relay puts a channel of ours in the place of the one that the answer goes to.
func relay(rpc *raft.RPC) (answers <-chan raft.RPCResponse, answer chan<- raft.RPCResponse) {
	ours := make(chan raft.RPCResponse, 1)
	answer = rpc.RespChan
	rpc.RespChan = ours
	return ours, answer
}

// respond passes an answer on, with the time.
func (o *observer) respond(to chan<- raft.RPCResponse, r raft.RPCResponse) {
	o.echo.stamp(r.Response)
	to <- r
}

// heardFrom notes what a leader said whom the library accepted: of the current term, that is.
func (o *observer) heardFrom(command any, answer raft.RPCResponse) {
	var asked, answered, commit uint64
	var leader []byte
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		leader = c.Leader //nolint:staticcheck // see echo
		asked, answered, commit = c.Term, answer.Response.(*raft.AppendEntriesResponse).Term, c.LeaderCommitIndex
	case *raft.InstallSnapshotRequest:
		leader = c.Leader // see echo
		asked, answered, commit = c.Term, answer.Response.(*raft.InstallSnapshotResponse).Term, c.LastLogIndex
	default:
		return
	}
	if answer.Error != nil || answered > asked {
		return
	}
	// A leader may speak of an index long before we have the entries up to it. Those that carry no command come to the
	// machine's notice through nobody but us.
	reached := uint64(0)
	if library := o.library.Load(); library != nil {
		reached = library.CommitIndex()
	}
	leader, complete, says := cutCommit(leader)
	sent := o.echo.sent(leader)
	commit = max(commit, complete)
	o.mu.Lock()
	if !says {
		complete = max(o.commit, commit)
	}
	o.fresh.learn(sent, complete)
	if sent.After(o.heard) { // messages overtake each other
		o.heard = sent
	}
	news := asked != o.term || commit > o.commit || reached > o.reached
	o.term, o.commit, o.reached = asked, max(o.commit, commit), max(o.reached, reached)
	o.mu.Unlock()
	if news {
		o.changed()
	}
}

// committed notes a commit index that this member found as the leader.
func (o *observer) committed(index uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.commit = max(o.commit, index)
}

// last is when a leader surely was there last, and the newest commit index that one spoke of.
func (o *observer) last() (heard time.Time, commit uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.heard, o.commit
}

// asking gives what is known of a follower's log before a message to it is sent: messages overtake each other, so that
// only what was known before sending can be held against the answer.
func (o *observer) asking(id raft.ServerID, term uint64) peerSeen {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.peers[id]
	switch {
	case p == nil || p.term < term:
		p = &peerSeen{term: term}
		o.peers[id] = p
	case p.term > term:
		return peerSeen{term: term} // of a term that is over
	}
	before := *p
	before.held = o.memory.of(id).Last
	return before
}

// answered notes a follower's answer to what this leader sent at a time. It is an error if that must not count.
func (o *observer) answered(id raft.ServerID, sent time.Time, before peerSeen, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	o.echo.keep(id, resp)
	if resp.Term > args.Term {
		return nil // it follows somebody else
	}
	if before.matched && resp.LastLog < before.lastLog || o.lost(before.held, resp.LastLog) {
		o.distrust(id, max(before.lastLog, before.held.Index), resp.LastLog)
	}
	if err := o.trusts(id); err != nil {
		return err
	}
	o.memory.acknowledges(id, args, resp)
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.peers[id]
	if p.term != args.Term {
		return nil // we lead another term by now
	}
	if sent.After(p.at) { // answers overtake each other
		p.at = sent
	}
	if !heartbeat(args) {
		p.took = time.Now()
	}
	if index, ok := holdsOurs(args, resp); ok {
		p.matched = true
		p.lastLog = max(p.lastLog, index)
	}
	if o.next != nil {
		close(o.next)
		o.next = nil
	}
	return nil
}

// holdsOurs tells whether an answer shows that the follower holds an entry of our term, and at which index. From then
// on its log is a prefix of ours: as long as we lead it only grows.
func holdsOurs(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (uint64, bool) {
	if !resp.Success {
		return 0, false
	}
	if n := len(args.Entries); n > 0 {
		last := args.Entries[n-1]
		return last.Index, last.Term == args.Term
	}
	return args.PrevLogEntry, args.PrevLogEntry > 0 && args.PrevLogTerm == args.Term
}

// seen is what a peer answered in a term, if it did.
func (o *observer) seen(id raft.ServerID, term uint64) (peerSeen, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p, ok := o.peers[id]
	if !ok || p.term != term {
		return peerSeen{}, false
	}
	return *p, true
}

// held is how many entries all peers together are known to hold, as followers of a term.
func (o *observer) held(term uint64) (entries uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.peers {
		if p.term == term {
			entries += p.lastLog
		}
	}
	return entries
}

// answer is closed once a follower answers.
func (o *observer) answer() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.next == nil {
		o.next = make(chan struct{})
	}
	return o.next
}

// quorumAt is the newest moment at which a majority of the voters, self counted, surely followed this leader, by what they answered; zero if
// none did yet. Who is not known to hold all entries up to an index, if that is not 0, does not count.
func (o *observer) quorumAt(c raft.Configuration, self raft.ServerID, term, holding uint64, now time.Time) time.Time {
	var at []time.Time
	for _, s := range c.Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		if s.ID == self {
			at = append(at, now)
			continue
		}
		p, _ := o.seen(s.ID, term)
		if p.lastLog < holding {
			p.at = time.Time{}
		}
		at = append(at, p.at)
	}
	if len(at) == 0 {
		return time.Time{}
	}
	slices.SortStableFunc(at, func(a, b time.Time) int { return b.Compare(a) })
	return at[len(at)/2]
}

// Consumer gives the library its messages.
func (o *observer) Consumer() <-chan raft.RPC { return o.rpcs }

// AppendEntries carries heartbeats, and entries for followers that are behind; it notes the answer.
func (o *observer) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse,
) error {
	if heartbeat(args) {
		o.keepBeat(args)
	} else if err := o.reach.await(id); err != nil {
		return err
	}
	return o.send(id, to, args, resp)
}

// send sends what is no part of a pipeline.
func (o *observer) send(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if err := cmp.Or(o.closed(), o.trusts(id)); err != nil {
		return err
	}
	before, sent := o.asking(id, args.Term), time.Now()
	err := o.hears(id, o.Transport.AppendEntries(id, to, o.entries(args, id), resp))
	if o.reach.note(id, err); err != nil {
		return err
	}
	return o.answered(id, sent, before, args, resp)
}

// entries gives a copy of a message with its addressee, with the time that it answered last, and with what is committed by now.
func (o *observer) entries(args *raft.AppendEntriesRequest, to raft.ServerID) *raft.AppendEntriesRequest {
	m := addressed(args, to)
	m.Leader = withCommit(o.echo.back(to), o.committedIn(args.Term)) //nolint:staticcheck // see echo and freshness
	return m
}

// committedIn is the commit index of this leader of a term; 0 before an entry of that term is committed.
func (o *observer) committedIn(term uint64) uint64 {
	library := o.library.Load()
	if library == nil {
		return 0
	}
	commit := library.CommitIndex()
	if o.open.Load() != term {
		var newest raft.Log
		if o.entry(commit, &newest) != nil || newest.Term != term {
			return 0
		}
		o.open.Store(term)
	}
	return commit
}

// keepBeat keeps a heartbeat of the library, to be sent again.
func (o *observer) keepBeat(args *raft.AppendEntriesRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.beat == nil || o.beat.Term < args.Term {
		o.beat = args
	}
}

// beatNow has a heartbeat sent to every other voter at once, for whoever cannot wait for the next one. There is one of ours on its way to each
// at a time: if that takes long, those of the library tell what there is to hear. It returns at once.
func (o *observer) beatNow(c raft.Configuration, term uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.beat == nil || o.beat.Term != term {
		return // the library is about to send the first of the term
	}
	for _, s := range c.Servers {
		if s.ID == o.self || s.Suffrage != raft.Voter || o.asked[s.ID] {
			continue
		}
		o.asked[s.ID] = true
		go func(beat *raft.AppendEntriesRequest) {
			_ = o.send(s.ID, s.Address, beat, new(raft.AppendEntriesResponse)) // what is answered is noted
			o.mu.Lock()
			defer o.mu.Unlock()
			delete(o.asked, s.ID)
		}(o.beat)
	}
}

// closed is an error once this member has done with the others: the library may not have, since its main goroutine waits for a disk, and its
// senders of heartbeats, and those that send entries, would connect anew whatever became of their connections.
func (o *observer) closed() error {
	select {
	case <-o.stop:
		return raft.ErrTransportShutdown
	default:
		return nil
	}
}

// Close ends forwarding and the transport below. Nothing is sent from then on.
func (o *observer) Close() error {
	o.reach.release()
	o.once.Do(func() { close(o.stop) })
	return o.Transport.Close()
}
