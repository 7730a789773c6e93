// SPDX-License-Identifier: Apache-2.0

package speaker

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/sim/fabric/message"
)

// Port is where switches listen.
const Port = "bgp"

// Dial connects to a port of the machine that has an address.
type Dial func(ctx context.Context, host, port string, hello []byte) (net.Conn, error)

// Config is what a speaker is made of. All is required, but for Crash where no switch is hostile.
type Config struct {
	ASN      uint32
	RouterID netip.Addr
	Dial     Dial
	Logger   *slog.Logger
	// Crash is called, from any goroutine, when something comes that the process dies of which reads it. It does not return before Kill was called.
	Crash func()
}

// Speaker announces paths to peers. Its methods may be called from several goroutines.
type Speaker struct {
	c Config

	changing sync.Mutex // held while Apply or an end is at work
	mu       sync.Mutex
	stopped  bool
	killed   bool                        // nothing is written any more
	table    map[netip.Prefix][]bgp.Path // in order
	peers    map[netip.Addr]*peer
	demoted  []netip.Addr // in order
	opened   uint64       // sessions so far
	keeping  bgp.Keeping
}

// New makes a speaker that has no paths and no peers. Detach or Drain ends it.
func New(c Config) *Speaker {
	return &Speaker{c: c, table: map[netip.Prefix][]bgp.Path{}, peers: map[netip.Addr]*peer{}}
}

// Apply implements bgp.Speaker: it returns once all sessions know what to send, and Written tells when they have.
//
// Errors: bgp.ErrInvalid for what cannot be announced, after all the rest was applied; bgp.ErrStopped; ctx.Err().
func (s *Speaker) Apply(ctx context.Context, desired bgp.Desired) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return bgp.ErrStopped
	}
	steps, invalid := bgp.Plan(s.c.ASN, desired, s.observe())
	for _, p := range desired.Peers {
		if known := s.peers[p.Address.Unmap()]; known != nil {
			known.Name = p.Name
		}
	}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.do(step)
	}
	return invalid
}

// observe is what is announced now, and to whom.
func (s *Speaker) observe() bgp.Observed {
	o := bgp.Observed{Demoted: slices.Clone(s.demoted)}
	for _, prefix := range s.prefixes() {
		o.Paths = append(o.Paths, s.table[prefix]...)
	}
	for _, a := range s.addresses() {
		o.Peers = append(o.Peers, s.peers[a].Peer)
	}
	return o
}

func (s *Speaker) prefixes() []netip.Prefix {
	return slices.SortedFunc(maps.Keys(s.table), netip.Prefix.Compare)
}

func (s *Speaker) addresses() []netip.Addr {
	return slices.SortedFunc(maps.Keys(s.peers), netip.Addr.Compare)
}

func (s *Speaker) do(step bgp.Step) {
	switch step.Action {
	case bgp.SetDemoted:
		s.setDemoted(step.Demoted)
	case bgp.AddPath:
		s.setPath(step.Path, true)
	case bgp.RemovePath:
		s.setPath(step.Path, false)
	case bgp.AddPeer:
		s.keeping.Met(*step.Peer, time.Now())
		s.start(*step.Peer, nil)
	case bgp.TunePeer:
		s.peers[step.Peer.Address].ConnectRetry = step.Peer.ConnectRetry
	case bgp.RestartPeer:
		old := s.peers[step.Peer.Address]
		s.keeping.Met(*step.Peer, time.Now())
		old.end(errDetached)
		s.start(*step.Peer, old)
	case bgp.RemovePeer:
		if s.peers[step.Peer.Address].session != nil {
			s.keeping.Left(step.Peer.Address)
		}
		s.peers[step.Peer.Address].end(errRemoved)
		delete(s.peers, step.Peer.Address)
	}
}

// setDemoted has those whom it concerns sent all paths anew.
func (s *Speaker) setDemoted(demoted []netip.Addr) {
	before := s.demoted
	s.demoted = slices.Clone(demoted)
	for _, a := range s.addresses() {
		if slices.Contains(before, a) != slices.Contains(demoted, a) {
			s.peers[a].touch(s.prefixes()...)
		}
	}
}

// setPath puts a path into the table, in the place of the one with its identifier, or takes that out.
func (s *Speaker) setPath(p bgp.Path, there bool) {
	list := slices.DeleteFunc(slices.Clone(s.table[p.Prefix]), func(o bgp.Path) bool { return o.PathID == p.PathID })
	if there {
		list = append(list, p)
		slices.SortFunc(list, bgp.Path.Compare)
	}
	s.table[p.Prefix] = list
	if len(list) == 0 {
		delete(s.table, p.Prefix)
	}
	for _, a := range s.addresses() {
		s.peers[a].touch(p.Prefix)
	}
}

// Written implements bgp.Speaker: a peer without a session has nothing to be sent.
func (s *Speaker) Written(context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false, bgp.ErrStopped
	}
	for _, p := range s.peers {
		if p.session != nil && !p.session.written() {
			return false, nil
		}
	}
	return true, nil
}

// Mend implements bgp.Speaker: switches of the model keep nothing that they are not told of.
func (s *Speaker) Mend(context.Context, time.Duration) error { return nil }

// Links implements bgp.Speaker.
func (s *Speaker) Links(context.Context) ([]bgp.Link, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, bgp.ErrStopped
	}
	var out []bgp.Link
	open := map[netip.Addr]bool{}
	for _, a := range s.addresses() {
		if n := s.peers[a].session; n != nil {
			open[a] = true
			families := n.families()
			out = append(out, bgp.Link{
				Peer: a, Session: n.number, Written: n.written(), Sent: n.said, Arrived: n.arrived,
				IPv4: slices.Contains(families, message.Family(bgp.IPv4)), IPv6: slices.Contains(families, message.Family(bgp.IPv6)),
			})
		}
	}
	for _, a := range s.keeping.Peers(time.Now()) {
		if !open[a] {
			out = append(out, bgp.Link{Peer: a})
		}
	}
	return out, nil
}

// Peers returns how things stand with every peer, by address.
func (s *Speaker) Peers(context.Context) ([]bgp.PeerStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, bgp.ErrStopped
	}
	var out []bgp.PeerStatus
	for _, a := range s.addresses() {
		p := s.peers[a]
		one := bgp.PeerStatus{Name: p.Name, Address: a, State: p.state, Demoted: slices.Contains(s.demoted, a)}
		if n := p.session; n != nil {
			one.Established, one.UpdatesSent = true, n.updates
			one.LongLived = p.Restart.Mode == bgp.RestartLongLived && n.remote.Restart != nil && n.remote.Restart.Stale > 0
			for _, sent := range n.sent {
				one.Announced += len(sent)
			}
		}
		out = append(out, one)
	}
	return out, nil
}

// Detach stops the speaker for a planned restart: connections close without a notification, so that switches keep our
// paths. The speaker cannot be used any more.
func (s *Speaker) Detach(ctx context.Context) error { return s.stop(ctx, errDetached) }

// Drain stops the speaker for good: it takes leave of its peers, and they drop our paths at once.
func (s *Speaker) Drain(ctx context.Context) error { return s.stop(ctx, errRemoved) }

func (s *Speaker) stop(ctx context.Context, how error) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return bgp.ErrStopped
	}
	s.stopped = true
	var ended []*peer
	for _, a := range s.addresses() {
		s.peers[a].end(how)
		ended = append(ended, s.peers[a])
	}
	s.mu.Unlock()
	for _, p := range ended {
		select {
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("leave peer %s: %w", p.Address, ctx.Err())
		}
	}
	return nil
}

// Kill is the end of the process in which it speaks: connections end at once, in the middle of whatever was being written.
func (s *Speaker) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped, s.killed = true, true
	for _, a := range s.addresses() {
		s.peers[a].end(errDetached)
	}
}

// dead tells whether it was killed.
func (s *Speaker) dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed
}
