// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// wire passes connections on to an address, until it is frozen: then the connections that there are carry
// nothing any more and stay open, as when a network loses its packets.
type wire struct {
	address string
	mu      sync.Mutex
	frozen  chan struct{} // closed when what exists is frozen
	closed  bool
	conns   []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{address: listener.Addr().String(), frozen: make(chan struct{})}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil || !w.add(near, far) {
				_ = near.Close()
				continue
			}
			frozen := w.now()
			running.Go(func() { carry(near, far, frozen) })
			running.Go(func() { carry(far, near, frozen) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		w.close()
		running.Wait()
	})
	return w
}

func carry(to, from net.Conn, frozen chan struct{}) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-frozen:
			_, _ = io.Copy(io.Discard, from) // until the end of the test
			return
		default:
		}
		if err == nil {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

func (w *wire) add(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, conns...)
	return !w.closed
}

func (w *wire) now() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.frozen
}

// freeze loses what the present connections carry from now on; new connections work.
func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.frozen)
	w.frozen = make(chan struct{})
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// A member that went silent is left for another; once the network is whole again it is heard of anew, although
// the old connection never broke.
func TestAgentLeavesASilentMemberAndDialsItAnew(t *testing.T) {
	t.Parallel()
	w, g := grouptest.NewWorld(t), grouptest.NewGroup(t)
	g.Apply(t, &fsm.PutNode{ID: "n1"})
	members := map[string]*member{}
	wires := map[string]*wire{}
	var seeds []string
	for _, name := range []string{"m1", "m2"} {
		m := newMember(t, w, name, g)
		through := newWire(t, m.api.Address)
		members[through.address], wires[through.address] = m, through
		seeds = append(seeds, through.address)
	}
	n := startNode(t, w, nodeOptions{name: "n1", boot: "b1", seeds: seeds, tuning: hasty})
	testkit.Until(t, "a member is followed", func() bool { return n.Status().Member != "" })
	first := n.Status().Member
	for _, m := range members {
		testkit.Until(t, "both hear the node", func() bool { list, _ := m.service.Beats(); return len(list) == 1 })
	}
	begin := time.Now()
	wires[first].freeze()
	testkit.Until(t, "the other member is followed", func() bool {
		at := n.Status().Member
		return at != "" && at != first
	})
	testkit.Until(t, "the silent one is heard of anew", func() bool {
		list, _ := members[first].service.Beats()
		return list[0].At.After(begin.Add(time.Second))
	})
	routed(t, g, "192.0.2.1")
	testkit.Until(t, "the node goes on", acknowledged(g, "192.0.2.1/32"))
}
