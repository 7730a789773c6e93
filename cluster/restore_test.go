// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// moment is one of a restore as a member sees it.
type moment string

const (
	begun   moment = "begun"   // the member has heard of the restore
	halfway moment = "halfway" // it has read something of the backup
	brought moment = "brought" // it has read all
	taking  moment = "taking"  // it is about to take the backup in
	taken   moment = "taken"   // it has
)

// told is a record that says at which moment of a restore it is.
type told struct {
	Record
	tell func(moment)
}

func (r told) ReplaceBy(backup Machine, renewal LogEntry) []Outcome {
	r.tell(taking)
	out := r.Record.ReplaceBy(backup.(told).Record, renewal)
	r.tell(taken)
	return out
}

func (r told) Restore(in io.Reader) error {
	r.tell(begun)
	first := make([]byte, 1)
	if _, err := io.ReadFull(in, first); err != nil {
		return err
	}
	r.tell(halfway)
	defer r.tell(brought)
	return r.Record.Restore(io.MultiReader(bytes.NewReader(first), in))
}

// backUpTelling is a group with commands 0..9 in a backup and 10..19 committed since, whose members tell their moments to what listen holds.
func backUpTelling(t *testing.T) (g *group, file []byte, listen *atomic.Pointer[func(member string, at moment)]) {
	t.Helper()
	listen = new(atomic.Pointer[func(string, moment)])
	g = newGroup(t, "a", "b", "c")
	g.change = func(m *member, o *Options) {
		tell := func(at moment) {
			if f := listen.Load(); f != nil {
				(*f)(m.name, at)
			}
		}
		o.Machine = told{Record{m.state}, tell}
		o.NewMachine = func() Machine { return told{Record{fsm.New()}, tell} }
		o.Renew = func(restored Machine) ([]Proposal, error) { return renew(restored.(told).Record) }
	}
	g.startAll()
	return g, backUp(t, g), listen
}

// Whatever becomes of a member at any moment of a restore, all of them have the backup in the end or none has, and nothing is lost that was
// acknowledged after it was over.
func TestRestoreIsOfEverybodyOrOfNobody(t *testing.T) {
	for _, at := range []moment{begun, halfway, brought, taking, taken} {
		for _, whose := range []string{"leader", "follower"} {
			runInBubble(t, fmt.Sprintf("%s-cut-%s", whose, at), func(t *testing.T) { disturbRestore(t, at, whose == "leader", false) })
			t.Run(fmt.Sprintf("%s-kill-%s", whose, at), func(t *testing.T) { // in no bubble: something is under way in who is killed
				t.Parallel()
				disturbRestore(t, at, whose == "leader", true)
			})
		}
	}
}

func disturbRestore(t *testing.T, at moment, leads, kill bool) {
	g, file, listen := backUpTelling(t)
	defer g.stopAll()
	var victim *member
	var hit atomic.Pointer[member] // maybe that of an earlier attempt
	var err error
	struck, once := make(chan struct{}), sync.Once{}
	isStruck := func() bool {
		select {
		case <-struck:
			return true
		default:
			return false
		}
	}
	for attempt := 0; ; attempt++ { // somebody else may come to lead before it begins
		leader := g.leader()
		who := leader
		if !leads {
			who = g.followers()[0]
		}
		victim = who
		var own atomic.Int32 // readings of whoever restores it, to see what is in it: one each time
		if leads && (at == begun || at == halfway || at == brought) {
			own.Store(1)
		}
		strike := func(name string, now moment) {
			if name != who.name || now != at {
				return
			}
			if own.Add(-1) >= 0 || isStruck() {
				return
			}
			once.Do(func() {
				hit.Store(who)
				close(struck)
			})
			if kill {
				who.cancel()
			} else {
				g.setCut(who.name, true)
			}
		}
		listen.Store(&strike)
		if _, err = leader.node.Restore(t.Context(), bytes.NewReader(file), false); err == nil || isStruck() {
			break
		}
		t.Logf("attempt %d: %v", attempt, err)
	}
	testkit.Until(t, "the moment, or a snapshot in its place", func() bool { // a follower's may come later
		_, epoch, _ := victim.state.Identity()
		return isStruck() || !leads && epoch == 2
	})
	listen.Store(nil)
	if !isStruck() {
		return
	}
	victim = hit.Load()
	testkit.Until(t, "those who are left have a leader", func() bool { return !kill || g.running(victim.name) == nil })
	for i := 30; i < 35; i++ {
		mustPropose(t, g.leader(), put(i))
	}
	if kill {
		victim.stop()
		g.start(victim.name)
	} else {
		g.setCut(victim.name, false)
	}
	mustPropose(t, g.leader(), put(40))
	g.settle()
	for _, name := range g.names() {
		if _, err := g.running(name).fsm.Snapshot(); err != nil {
			t.Errorf("%s takes no snapshots any more: %v", name, err)
		}
	}
	s := g.leader().state
	_, epoch, _ := s.Identity()
	switch {
	case !has(s, 9) || !has(s, 34) || !has(s, 40):
		t.Errorf("something is lost that was acknowledged (the restore: %v)", err)
	case err == nil && (epoch != 2 || has(s, 10)):
		t.Errorf("the backup was restored, and the record in epoch %d is another one", epoch)
	case err != nil && !errors.Is(err, ErrUnknownOutcome) && (epoch != 1 || !has(s, 19)):
		t.Errorf("nothing was restored (%v), and the record of epoch %d is another one", err, epoch)
	case (epoch == 2) == has(s, 19):
		t.Errorf("half of a restore: epoch %d", epoch)
	}
	t.Logf("epoch %d, the restore: %v", epoch, err)
}

// A member that was away while a backup was restored comes back to what the group has, whether by entries or by a snapshot.
func TestMemberThatMissedARestoreCatchesUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g, file := backedUp(t, "a", "b", "c")
		defer g.stopAll()
		away := g.followers()[0]
		away.stop()
		if _, err := g.leader().node.Restore(t.Context(), bytes.NewReader(file), false); err != nil {
			t.Fatal(err)
		}
		mustPropose(t, g.leader(), put(50))
		g.start(away.name)
		g.settle()
		if has(away.state, 10) || !has(away.state, 50) {
			t.Fatal("it has another record than the group")
		}
	})
}

// However long a member reads a backup, nobody loses the leadership over it, and what was done is said to be done.
func TestRestoreThatTakesLong(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g, file, listen := backUpTelling(t)
		defer g.stopAll()
		leader := g.leader()
		term := leader.node.LeadingTerm()
		slow := func(_ string, at moment) {
			if at == halfway {
				time.Sleep(50 * g.tuning.Heartbeat)
			}
		}
		listen.Store(&slow)
		if _, err := leader.node.Restore(t.Context(), bytes.NewReader(file), false); err != nil {
			t.Fatal(err)
		}
		listen.Store(nil)
		g.settle()
		if now := g.leader(); now != leader || now.node.raft.CurrentTerm() != term {
			t.Errorf("%s led in term %d, now %s does in term %d", leader.name, term, now.name, now.node.raft.CurrentTerm())
		}
	})
}

// What was planned for the former record is not proposed for the restored one: neither what waited, nor what was being encoded.
func TestNothingOfTheFormerRecordIsProposedForTheRestoredOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g, file := backedUp(t, "a")
		m := g.members["a"]
		m.stop()
		var hold atomic.Bool
		reached, resume := make(chan struct{}), make(chan struct{})
		g.change = func(m *member, o *Options) {
			encode := o.Encode
			o.Encode = func(p []Proposal) ([]byte, error) {
				if c, ok := p[0].Command.(*fsm.PutRegister); ok && c.ID == policyID(60) && hold.Load() {
					close(reached)
					<-resume
				}
				return encode(p)
			}
		}
		g.start("a")
		defer g.stopAll()
		g.leader()
		hold.Store(true)
		var wg sync.WaitGroup
		answers := make([]error, 2)
		wg.Go(func() { _, answers[0] = m.node.Propose(t.Context(), Bulk, put(60)) }) // is being encoded
		<-reached
		wg.Go(func() { _, answers[1] = m.node.Propose(t.Context(), Bulk, put(61)) }) // waits
		synctest.Wait()
		if _, err := m.node.Restore(t.Context(), bytes.NewReader(file), false); err != nil {
			t.Fatal(err)
		}
		close(resume)
		wg.Wait()
		mustPropose(t, g.leader(), put(70))
		for i, err := range answers {
			if !errors.Is(err, ErrNotLeader) || has(m.state, 60+i) {
				t.Errorf("proposal %d: %v, in the record: %v", i, err, has(m.state, 60+i))
			}
		}
	})
}

// While a backup is on its way there is no snapshot, and a member that starts meanwhile reads on where it was.
func TestNoSnapshotIsTakenInTheMiddleOfARestore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g, file, listen := backUpTelling(t)
		defer g.stopAll()
		leader, follower := g.leader(), g.followers()[0]
		early := make(chan error, 1)
		look := func(name string, at moment) {
			if name == follower.name && at == brought {
				_, err := follower.node.fsm.Snapshot()
				early <- err
			}
		}
		listen.Store(&look)
		if _, err := leader.node.Restore(t.Context(), bytes.NewReader(file), false); err != nil {
			t.Fatal(err)
		}
		if err := <-early; !errors.Is(err, errStaging) { // it may be behind the leader
			t.Errorf("a follower that is in the middle was asked for a snapshot: %v", err)
		}
		listen.Store(nil)
		g.settle()
		testkit.Until(t, "the log begins behind the restore", func() bool {
			first, err := follower.disk.entries.FirstIndex()
			last, _ := follower.disk.entries.LastIndex()
			return err == nil && (first == 0 || first > last-3)
		})
		mustPropose(t, g.leader(), put(50))
		follower.stop()
		g.start(follower.name)
		g.settle()
	})
}

// Who asked for a restore and did not wait for it may ask again at once: what becomes of the first one does not touch the second.
func TestRestoreThatNobodyWaitsForIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g, file, listen := backUpTelling(t)
		defer g.stopAll()
		leader := g.leader()
		ctx, cancel := context.WithCancel(t.Context())
		var readings atomic.Int32
		leave := func(name string, at moment) {
			if name == leader.name && at == brought && readings.Add(1) == 2 { // the first one is to see what is in it
				cancel()
				time.Sleep(g.tuning.Heartbeat) // so that it is not brought before that is seen
			}
		}
		listen.Store(&leave)
		if _, err := leader.node.Restore(ctx, bytes.NewReader(file), false); !errors.Is(err, context.Canceled) {
			t.Fatalf("it was waited for: %v", err)
		}
		listen.Store(nil)
		synctest.Wait()
		if _, err := leader.node.fsm.Snapshot(); err != nil {
			t.Errorf("what was brought is kept: %v", err)
		}
		if _, err := leader.node.Restore(t.Context(), bytes.NewReader(file), false); err != nil {
			t.Errorf("the second one: %v", err)
		}
		g.settle()
	})
}
