// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"net/netip"
	"reflect"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/leases"
	"fairlead.io/fairlead/dataplane/l2"
	"fairlead.io/fairlead/fsm"
)

// grantor leads, or does not, and grants one lease to whoever asks.
type grantor struct {
	lease *fsm.Lease // nil: another member leads
	mu    sync.Mutex
	asked []leases.Renewal
}

func (g *grantor) Renew(_ context.Context, r leases.Renewal) ([]leases.Grant, error) {
	if g.lease == nil {
		return nil, leases.ErrNotLeading
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = append(g.asked, r)
	return []leases.Grant{{Lease: g.lease, Interfaces: []string{"eth0"}}}, nil
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

// Nodes renew once addresses are answered for anywhere, find the member that leads, and say what they hold.
func TestLeasesAreRenewedWithTheLeader(t *testing.T) {
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	vip := netip.MustParseAddr("203.0.113.1")
	leader := &grantor{lease: &fsm.Lease{VIP: vip, Holder: "n1", Fence: fsm.Revision{Epoch: 1, Index: 7}, Term: time.Second, Keep: true}}
	m1, m2 := newGrantor(t, w, "m1", g, &grantor{}), newGrantor(t, w, "m2", g, leader)
	h := &holder{}
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	routed(t, g, "203.0.113.1")
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: []string{m1.api.Address, m2.api.Address}, leases: h})
	grouptest.Eventually(t, "the node has its state", n.has("203.0.113.1/32"))
	h.mu.Lock()
	if h.sent != 0 {
		t.Errorf("renewed %d times while nobody asks for it", h.sent)
	}
	h.mu.Unlock()
	g.Apply(t, &fsm.PutL2Advertisement{Advertisement: fsm.L2Advertisement{Name: "lan", Pools: []fsm.PoolName{"p1"}, EveryNode: true}})
	want := l2.Lease{Address: vip, Fence: leader.lease.Fence, Term: time.Second, Keep: true, Interfaces: []string{"eth0"}}
	grouptest.Eventually(t, "the lease is granted", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.granted) == 1 && reflect.DeepEqual(h.granted[0], want)
	})
	grouptest.Eventually(t, "the leader hears that it is held", func() bool {
		leader.mu.Lock()
		defer leader.mu.Unlock()
		newest := leader.asked[len(leader.asked)-1]
		return newest.Node == "n1" && newest.Boot == "b1" && len(newest.Held) == 1 && newest.Held[0] == (leases.Held{VIP: vip, Fence: want.Fence})
	})
}
