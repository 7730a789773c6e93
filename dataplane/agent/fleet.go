// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
)

// fleet is the members that an agent knows: its seeds and those that the group names.
type fleet struct {
	agent   *Agent
	changed chan struct{} // of capacity 1
	hopes   chan struct{} // of capacity 1: a member came in touch with a quorum

	mu      sync.Mutex
	learned []string
	peers   map[string]*peer // by address
}

func newFleet(a *Agent) *fleet {
	return &fleet{agent: a, changed: make(chan struct{}, 1), hopes: make(chan struct{}, 1), peers: map[string]*peer{}}
}

// set takes over the addresses of all members.
func (f *fleet) set(learned []string) {
	f.mu.Lock()
	same := slices.Equal(f.learned, learned)
	f.learned = learned
	f.mu.Unlock()
	if same {
		return
	}
	select {
	case f.changed <- struct{}{}:
	default: // a change is waiting to be seen already
	}
}

// run heartbeats to every member until ctx ends.
func (f *fleet) run(ctx context.Context) {
	var beating sync.WaitGroup
	stop := map[string]context.CancelFunc{}
	for {
		want := f.addresses()
		for address, end := range stop {
			if !slices.Contains(want, address) {
				end()
				delete(stop, address)
				f.forget(address)
			}
		}
		for _, address := range want {
			if stop[address] != nil {
				continue
			}
			own, end := context.WithCancel(ctx)
			stop[address] = end
			p := f.peer(address)
			beating.Go(func() { p.beat(own) })
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			for _, end := range stop {
				end()
			}
			beating.Wait()
			return
		}
	}
}

func (f *fleet) addresses() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addressesLocked()
}

func (f *fleet) addressesLocked() []string {
	all := slices.Concat(f.agent.o.Seeds, f.learned)
	slices.Sort(all)
	return slices.Compact(all)
}

func (f *fleet) forget(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.peers, address)
}

func (f *fleet) peer(address string) *peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.peerLocked(address)
}

func (f *fleet) peerLocked(address string) *peer {
	p := f.peers[address]
	if p == nil {
		p = newPeer(f.agent, address)
		f.peers[address] = p
	}
	return p
}

// hope notes that a member can be expected to serve from now on.
func (f *fleet) hope() {
	select {
	case f.hopes <- struct{}{}:
	default: // noted already
	}
}

// forgetHopes drops what was noted so far.
func (f *fleet) forgetHopes() {
	select {
	case <-f.hopes:
	default:
	}
}

// best is the highest rank of any member.
func (f *fleet) best() (rank int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.peers {
		rank = max(rank, p.rank())
	}
	return rank
}

// order gives the members to ask, best first: those that answer and are in touch with a quorum, then those that
// answer, then the others; among equals the one that was just left last. Else chance decides, so that agents
// spread over the members.
func (f *fleet) order(left *peer) []*peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*peer
	for _, address := range f.addressesLocked() {
		out = append(out, f.peerLocked(address))
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	slices.SortStableFunc(out, func(a, b *peer) int {
		if c := b.rank() - a.rank(); c != 0 || a != left && b != left {
			return c
		}
		if a == left {
			return 1
		}
		return -1
	})
	return out
}
