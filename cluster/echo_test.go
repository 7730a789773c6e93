// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// letter is a message of a leader, or an answer to it, that somebody holds up.
type letter struct {
	leader int // which run of the leader sent it
	sent   time.Time
	m      *raft.AppendEntriesRequest
	answer *raft.AppendEntriesResponse
}

// post is a leader and a follower with the messages between them, which arrive in any order, at any time, or never. Either may begin anew.
type post struct {
	leader, follower *observer
	runs             int
	inbox, outbox    []letter
	// read are when those messages were sent that this run of the follower read; the model.
	read []time.Time
}

func newPost() *post {
	return &post{leader: newObserver(nil, "l", func() {}), follower: newObserver(nil, "f", func() {})}
}

func (p *post) send() {
	args := &raft.AppendEntriesRequest{Term: 1, RPCHeader: raft.RPCHeader{Addr: []byte("l")}, Leader: []byte("l")} //nolint:staticcheck // as the library fills it in
	p.leader.asking("f", 1)
	p.inbox = append(p.inbox, letter{leader: p.runs, sent: time.Now(), m: p.leader.entries(args, "f")})
}

// deliver has the follower read a message.
func (p *post) deliver(i int) {
	x := p.inbox[i]
	p.inbox = slices.Delete(p.inbox, i, i+1)
	out := make(chan raft.RPCResponse, 1)
	x.answer = &raft.AppendEntriesResponse{Term: 1, Success: true, RPCHeader: raft.RPCHeader{Addr: []byte("f")}}
	r := raft.RPCResponse{Response: x.answer}
	p.follower.respond(out, r)
	p.follower.heardFrom(x.m, <-out)
	p.read = append(p.read, x.sent)
	p.outbox = append(p.outbox, x)
}

// bring has the leader read an answer, if it is still the one that was answered.
func (p *post) bring(i int) {
	x := p.outbox[i]
	p.outbox = slices.Delete(p.outbox, i, i+1)
	if x.leader == p.runs {
		_ = p.leader.answered("f", x.sent, p.leader.asking("f", 1), x.m, x.answer) // what must not count is stamped all the same
	}
}

func (p *post) step(t *rapid.T) {
	pick := func(of []letter) int { return rapid.IntRange(0, len(of)-1).Draw(t, "which") }
	switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
	case what < 3:
		p.send()
	case what < 5 && len(p.inbox) > 0:
		p.deliver(pick(p.inbox))
	case what < 7 && len(p.outbox) > 0:
		p.bring(pick(p.outbox))
	case what == 7:
		p.leader, p.runs = newObserver(nil, "l", func() {}), p.runs+1
	case what == 8:
		p.follower, p.read = newObserver(nil, "f", func() {}), nil
	default:
		time.Sleep(time.Duration(rapid.IntRange(1, 5000).Draw(t, "ms")) * time.Millisecond)
	}
}

// A follower never takes its leader to have been there later than it was, whatever was held up, how long, and whoever began anew.
func TestPropertyWhatWasHeldUpIsNoNewContact(t *testing.T) {
	contacts := 0
	synctest.Test(t, func(t *testing.T) {
		testkit.Check(t, func(t *rapid.T) {
			p := newPost()
			for range rapid.IntRange(1, 40).Draw(t, "steps") {
				p.step(t)
				at, _ := p.follower.last()
				if at.IsZero() {
					continue
				}
				contacts++
				if len(p.read) == 0 || at.After(slices.MaxFunc(p.read, time.Time.Compare)) {
					t.Fatalf("in touch %v ago, of messages sent at %v", time.Since(at), p.read)
				}
			}
		})
	})
	if contacts == 0 {
		t.Error("it never was in touch")
	}
}

// While messages come and go, a follower is in touch as of the message before, from the second one on.
func TestContactIsAsOldAsARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPost()
		for i := range 5 {
			before := time.Now()
			time.Sleep(100 * time.Millisecond)
			p.send()
			p.deliver(0)
			p.bring(0)
			if at, _ := p.follower.last(); i == 0 != at.IsZero() || i > 0 && !at.Equal(before) {
				t.Errorf("message %d: in touch %v ago", i+1, time.Since(at))
			}
		}
	})
}

// A release that does not give back what it was answered is in touch when it is read, as it was there.
func TestLeaderThatGivesNothingBackIsHeardWhenItIsRead(t *testing.T) {
	e := newEcho()
	before := time.Now()
	if at := e.sent([]byte("10.0.0.1:7444")); at.Before(before) {
		t.Errorf("in touch %v ago", time.Since(at))
	}
}

// What the other side wrote is not trusted: neither a time to come, nor one of another run, nor bytes.
func FuzzEchoOfOthers(f *testing.F) {
	e := newEcho()
	stamped := &raft.AppendEntriesResponse{}
	e.stamp(stamped)
	f.Add(stamped.Addr)
	f.Add(append(stamped.Addr[:9:9], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
	f.Add([]byte{nameMark})
	f.Add(append(stamped.Addr[:len(stamped.Addr):len(stamped.Addr)], "and more"...))
	f.Fuzz(func(t *testing.T, back []byte) {
		if at := e.sent(back); at.After(time.Now()) {
			t.Errorf("sent in the future: %v", at)
		}
		e.keep("x", &raft.AppendEntriesResponse{RPCHeader: raft.RPCHeader{Addr: back}})
		if n := len(e.back("x")); n != 1 && n != 1+stampLen {
			t.Errorf("%d bytes are given back", n)
		}
	})
}
