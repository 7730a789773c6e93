// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/dataplane/l2"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// grantor leads, or does not, and grants one lease to whoever asks.
type grantor struct {
	mu    sync.Mutex
	lease *fsm.Lease // nil: another member leads
	hangs bool
	asked []leases.Renewal
}

func (g *grantor) Renew(ctx context.Context, r leases.Renewal) ([]leases.Grant, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lease == nil {
		return nil, leases.ErrNotLeading
	}
	g.asked = append(g.asked, r)
	if g.hangs {
		g.mu.Unlock()
		<-ctx.Done()
		g.mu.Lock()
		return nil, ctx.Err()
	}
	return []leases.Grant{{Lease: g.lease, Interfaces: []string{"eth0"}}}, nil
}

// heard tells whether a renewal that fits came.
func (g *grantor) heard(fits func(leases.Renewal) bool) func() bool {
	return func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return slices.ContainsFunc(g.asked, fits)
	}
}

// holder keeps what it is granted.
type holder struct {
	mu      sync.Mutex
	sent    time.Duration
	granted []l2.Lease
}

func (h *holder) Renew() l2.Renewal {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent++
	r := l2.Renewal{Sent: h.sent}
	for _, l := range h.granted {
		r.Held = append(r.Held, l2.Held{Address: l.Address, Fence: l.Fence})
	}
	return r
}

func (h *holder) Grant(sent time.Duration, granted []l2.Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sent != h.sent {
		return false
	}
	h.granted = granted
	return true
}

func (h *holder) Leave() l2.Renewal {
	h.mu.Lock()
	h.granted = nil
	h.mu.Unlock()
	return h.Renew()
}

// Nodes renew once addresses are answered for anywhere, find the member that leads, say what they hold, and give it back.
func TestLeasesAreRenewedWithTheLeader(t *testing.T) {
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	vip := netip.MustParseAddr("203.0.113.1")
	leader := &grantor{lease: &fsm.Lease{VIP: vip, Holder: "n1", Fence: fsm.Revision{Epoch: 1, Index: 7}, Term: time.Second, Keep: true}}
	other := &grantor{}
	m1, m2 := newGrantor(t, w, "m1", g, other), newGrantor(t, w, "m2", g, leader)
	h := &holder{}
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	routed(t, g, "203.0.113.1")
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m1.api.Address, m2.api.Address}, leases: h})
	testkit.Until(t, "the node has its state", n.has("203.0.113.1/32"))
	h.mu.Lock()
	if h.sent != 0 {
		t.Errorf("renewed %d times while nobody asks for it", h.sent)
	}
	h.mu.Unlock()
	g.Apply(t, &fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"p1"}, EveryNode: true}})
	want := l2.Lease{Address: vip, Fence: leader.lease.Fence, Term: time.Second, Keep: true, Interfaces: []string{"eth0"}}
	testkit.Until(t, "the lease is granted", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.granted) == 1 && reflect.DeepEqual(h.granted[0], want)
	})
	held := []leases.Held{{VIP: vip, Fence: want.Fence}}
	testkit.Until(t, "the leader hears that it is held", leader.heard(func(r leases.Renewal) bool {
		return r.Node == "n1" && r.Boot == "b1" && slices.Equal(r.Held, held)
	}))

	// The leader hangs, and another one comes to lead: it is found before the renewal is given up.
	leader.mu.Lock()
	leader.hangs = true
	leader.mu.Unlock()
	other.mu.Lock()
	other.lease = leader.lease
	other.mu.Unlock()
	testkit.Until(t, "both were asked the same", func() bool {
		leader.mu.Lock()
		defer leader.mu.Unlock()
		last := leader.asked[len(leader.asked)-1]
		return other.heard(func(r leases.Renewal) bool { return r.Sent == last.Sent })()
	})

	// An agent that ends says so, and that it uses nothing any more.
	n.stop()
	testkit.Until(t, "the group hears that all is given back", other.heard(func(r leases.Renewal) bool {
		return r.Leaving && len(r.Held) == 0
	}))
}
