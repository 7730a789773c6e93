// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"sync"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

// peer is one member as this agent sees it.
type peer struct {
	agent   *Agent
	address string

	mu       sync.Mutex
	link     Conn
	answered time.Time // when a heartbeat was last answered, or the connection was made
	alive    bool      // the newest heartbeat was answered
	quorum   bool      // by a member that is in touch with a quorum
	silence  func()    // told once when the member falls silent
}

func newPeer(a *Agent, address string) *peer {
	return &peer{agent: a, address: address, link: a.o.Connect(address), answered: time.Now()}
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

// onSilence has f told when heartbeats stay unanswered; nil for nobody.
func (p *peer) onSilence(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence = f
}

// beat sends heartbeats until ctx ends, one at a time.
func (p *peer) beat(ctx context.Context) {
	defer func() { p.conn().Close() }()
	ticks := time.NewTicker(p.agent.o.Tuning.Heartbeat)
	defer ticks.Stop()
	for {
		p.once(ctx)
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
	}
}

// once sends one heartbeat. It waits for the answer longer than until the next one is due: a slow member is not
// a silent one.
func (p *peer) once(ctx context.Context) {
	t := p.agent.o.Tuning
	call, cancel := context.WithTimeout(ctx, max(t.Silence/3, t.Heartbeat))
	defer cancel()
	answer, err := p.conn().Heartbeat(call, &fairleadv1.HeartbeatRequest{Node: p.agent.o.Node, Boot: p.agent.o.Boot})
	if ctx.Err() != nil {
		return
	}
	p.agent.metrics.beat(err == nil)
	if silence := p.judge(answer, err); silence != nil {
		silence()
	}
}

// judge takes note of an answer. After a long silence the connection is made anew: the network may be whole
// again while the old connection still waits for its next retransmission. It gives whom to tell of the silence.
func (p *peer) judge(answer *fairleadv1.HeartbeatResponse, err error) (silence func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alive = err == nil
	if p.alive {
		p.answered, p.quorum = time.Now(), answer.GetInQuorum()
		return nil
	}
	if time.Since(p.answered) < p.agent.o.Tuning.Silence {
		return nil
	}
	p.link.Close()
	p.link, p.answered = p.agent.o.Connect(p.address), time.Now()
	silence, p.silence = p.silence, nil
	return silence
}
