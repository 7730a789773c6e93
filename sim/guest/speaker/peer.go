// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// States of a peer.
const (
	stateIdle        = "idle"
	stateActive      = "active"
	stateOpenSent    = "opensent"
	stateEstablished = "established"
)

// peer is a neighbour, and what keeps a session with it open.
type peer struct {
	bgp.Peer
	s       *Speaker
	state   string
	session *session  // nil while none is established
	healed  time.Time // when a session ended last since its switch had what it was not to have
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

// How a session ends that we end.
var (
	errDetached = errors.New("left for a restart") // no word to the switch
	errRemoved  = errors.New("left for good")      // it drops our paths
)

// Sessions that were lost sooner than shortLife after they opened wait longer before they dial again.
const (
	shortLife = 10 * time.Second
	shortWait = 5 * time.Second
)

// start begins to keep a session with a peer, once the one before has ended.
func (s *Speaker) start(p bgp.Peer, before *peer) {
	ctx, cancel := context.WithCancelCause(context.Background())
	one := &peer{Peer: p, s: s, state: stateIdle, cancel: cancel, done: make(chan struct{})}
	s.peers[p.Address] = one
	go func() {
		defer close(one.done)
		if before != nil {
			<-before.done
		}
		one.run(ctx)
	}()
}

func (p *peer) end(how error) { p.cancel(how) }

// touch has prefixes looked at that may have to be sent.
func (p *peer) touch(prefixes ...netip.Prefix) {
	if p.session != nil {
		p.session.touch(prefixes)
	}
}

// run keeps a session open until ctx ends.
func (p *peer) run(ctx context.Context) {
	if p.Passive {
		p.note(stateActive)
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil {
		p.note(stateActive)
		begin := time.Now()
		established, err := p.once(ctx)
		p.note(stateIdle)
		if ctx.Err() != nil {
			return
		}
		wait := p.retry()
		if established {
			p.s.c.Logger.Warn("bgp session lost", "peer", p.Address, "err", err)
			if time.Since(begin) < shortLife {
				wait = max(wait, shortWait)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// once dials and works until the session ends, and tells whether there was one.
func (p *peer) once(ctx context.Context) (established bool, err error) {
	dialling, cancel := context.WithTimeout(ctx, p.HoldTime)
	conn, err := p.s.c.Dial(dialling, p.Address.String(), Port, nil)
	cancel()
	if err != nil {
		return false, err
	}
	p.note(stateOpenSent)
	n := newSession(p, conn)
	err = n.run(ctx)
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if errors.Is(err, errAstray) {
		p.healed = time.Now()
	}
	established = p.session == n
	p.session = nil
	if established {
		p.s.keeping.Lost(p.Address, time.Now())
	}
	return established, err
}

func (p *peer) note(state string) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.state = state
}

func (p *peer) retry() time.Duration {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.ConnectRetry
}
