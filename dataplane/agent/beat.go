// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"connectrpc.com/connect"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// peer is one member as this agent sees it.
type peer struct {
	agent   *Agent
	address string

	mu       sync.Mutex
	link     Conn
	end      func()      // ends the stream of heartbeats that runs over link
	watch    *time.Timer // goes off when an answer is missing
	answered time.Time   // when a heartbeat was last answered, or the connection was made
	alive    bool        // heartbeats are answered
	missed   bool        // and were not when last expected
	quorum   bool        // by a member that is in touch with a quorum
	leases   bool        // by one that says that leases are to be renewed
	counts   bool        // by one that says that flows are to be counted
	touched  time.Time   // when one was last answered by a member that is in touch with a quorum
}

func newPeer(a *Agent, address string) *peer {
	return &peer{agent: a, address: address, link: a.o.Connect(address), end: func() {}, answered: time.Now()}
}

func (p *peer) conn() Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link
}

// rank orders members by how likely they serve.
func (p *peer) rank() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.alive && p.quorum:
		return 2
	case p.alive:
		return 1
	}
	return 0
}

// doubtful tells whether the member is known to serve worse than it should: it does not answer, or is out of touch with
// a quorum. Of one that has not been asked for long enough nothing is known.
func (p *peer) doubtful() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missed || p.alive && !p.quorum
}

// beat keeps heartbeats going to the member until ctx ends.
func (p *peer) beat(ctx context.Context) {
	p.mu.Lock()
	p.watch = time.AfterFunc(p.patience(), func() { p.unanswered(ctx) })
	p.mu.Unlock()
	defer func() {
		p.watch.Stop()
		p.conn().Close()
	}()
	for {
		p.exchange(ctx)
		if ctx.Err() == nil {
			p.fails()
		}
		if !sleep(ctx, p.agent.o.Tuning.Heartbeat) {
			return
		}
	}
}

type beatStream = connect.BidiStreamForClientSimple[fairleadv1.HeartbeatRequest, fairleadv1.HeartbeatResponse]

// exchange sends heartbeats and takes answers until the stream of them breaks, is given up, or ctx ends.
func (p *peer) exchange(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.begin(ctx, cancel)
	if err != nil {
		return
	}
	var sending sync.WaitGroup
	defer sending.Wait()
	defer cancel()
	sending.Go(func() {
		defer cancel()
		p.send(ctx, stream)
	})
	for {
		answer, err := stream.Receive()
		if err != nil {
			_ = stream.CloseResponse() // it is over, whatever that says
			return
		}
		p.heard(answer)
	}
}

func (p *peer) begin(ctx context.Context, end func()) (*beatStream, error) {
	p.mu.Lock()
	link := p.link
	p.end = end
	p.mu.Unlock()
	return link.Heartbeat(ctx)
}

// send sends heartbeats until that fails or ctx ends. It may have to wait, for a connection to be made or for a network
// that holds everything back, which is why nobody waits for it.
//
// In the end it says that there will be no more: until then net/http waits for them, and looks at no context.
func (p *peer) send(ctx context.Context, stream *beatStream) {
	defer func() { _ = stream.CloseRequest() }() // it is over anyway
	t := p.agent.o.Tuning
	next := time.NewTimer(p.agent.untilBeat(time.Now()))
	defer next.Stop()
	var asked time.Time
	var told uint64 // number of the sessions that this stream has
	var probes telling
	for {
		beat := &fairleadv1.HeartbeatRequest{Node: p.agent.o.Node, Boot: p.agent.o.Boot, Flows: p.agent.countMessage()}
		if now := time.Now(); now.Sub(asked) >= t.ask() {
			beat.Answer, asked = true, now
		}
		probes.next(p.agent.o.Probes, beat)
		var number uint64
		if beat.Sessions, number = p.agent.sessions(told); stream.Send(beat) != nil {
			return
		}
		told = number
		select {
		case <-next.C:
			next.Reset(p.agent.untilBeat(time.Now()))
		case <-ctx.Done():
			return
		}
	}
}

// untilBeat is how long it is to the next beat. Beats to all members fall together, so that a node wakes once for them.
func (a *Agent) untilBeat(now time.Time) time.Duration {
	return a.o.Tuning.Heartbeat - now.Sub(a.began)%a.o.Tuning.Heartbeat
}

// ask is how often a heartbeat asks for an answer.
func (t Tuning) ask() time.Duration { return max(t.Silence/6, t.Heartbeat) }

// patience is after what time without an answer a member counts as one that does not answer: longer than until the
// next one is due, since a slow member is not a silent one.
func (p *peer) patience() time.Duration {
	t := p.agent.o.Tuning
	return t.ask() + max(t.Silence/3, t.Heartbeat)
}

// heard takes note of an answer.
func (p *peer) heard(answer *fairleadv1.HeartbeatResponse) {
	p.agent.metrics.beat(true)
	p.mu.Lock()
	rises := answer.GetInQuorum() && !(p.alive && p.quorum)
	p.alive, p.missed, p.answered, p.quorum = true, false, time.Now(), answer.GetInQuorum()
	p.leases, p.counts = answer.GetLeases(), answer.GetCountFlows()
	if p.quorum {
		p.touched = p.answered
	}
	p.watch.Reset(p.patience())
	p.mu.Unlock()
	p.agent.hearRevoked(p, answer.GetRevoked())
	if answer.GetLeases() {
		signal(p.agent.leased)
	}
	if answer.GetCountFlows() {
		signal(p.agent.toCount)
	}
	if answer.GetSpeaks() {
		select {
		case p.agent.spoke <- struct{}{}:
		default: // said already
		}
	}
	if rises {
		p.agent.fleet.hope()
	}
	p.agent.reconsider()
}

// signal fills a channel of capacity 1; what was said already is not said again.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fails takes note of a stream that broke.
func (p *peer) fails() {
	p.agent.metrics.beat(false)
	p.mu.Lock()
	p.alive, p.missed = false, true
	p.mu.Unlock()
	p.agent.reconsider()
}

// unanswered takes note of an answer that is missing. After a long silence the connection is made anew: the network may
// be whole again while the old connection still waits for its next retransmission.
func (p *peer) unanswered(ctx context.Context) {
	p.mu.Lock()
	if ctx.Err() != nil {
		p.mu.Unlock()
		return
	}
	p.alive, p.missed = false, true
	left := p.agent.o.Tuning.Silence - time.Since(p.answered)
	lost := left <= 0
	if lost {
		p.end()
		p.link.Close()
		p.link, p.answered, left = p.agent.o.Connect(p.address), time.Now(), p.patience()
	}
	p.watch.Reset(left)
	p.mu.Unlock()
	p.agent.metrics.beat(false)
	if lost {
		p.agent.forsake(p, fmt.Errorf("no heartbeat answered for %v", p.agent.o.Tuning.Silence))
		return
	}
	p.agent.reconsider()
}
