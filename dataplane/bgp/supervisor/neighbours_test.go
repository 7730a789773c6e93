// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/dataplane/bgp"
)

// neighbours are the switches of a world. They know nothing of admissions: only what RFC 4724 says of what they keep.
type neighbours struct {
	mu    sync.Mutex
	all   []*neighbour
	kills []string // who ended children, in order
}

// neighbour is a switch.
type neighbour struct {
	peer  bgp.Peer
	kind  kindOf
	after time.Duration // of late ones

	// What follows is guarded by the neighbours' lock.
	hostile bool
	with    *task // that it has a session with
	has     bool  // everything, of that session
	keeps   bool  // what was announced, be it stale
	lost    int   // how often it lost that
}

// kindOf says what a switch does, if it is hostile.
type kindOf int

const (
	good   kindOf = iota
	atOpen        // it ends children whenever a session opens, or is open
	late          // it ends children some time after it had everything
	silent        // it is not there
)

// The times of sessions.
const (
	dialTakes  = 40 * time.Millisecond
	tableTakes = 60 * time.Millisecond
)

func newNeighbours(kinds ...kindOf) *neighbours {
	w := &neighbours{}
	for i, kind := range kinds {
		w.all = append(w.all, &neighbour{kind: kind, peer: bgp.Peer{
			Name: fmt.Sprintf("switch%d", i+1), Address: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), RemoteASN: 65000,
		}})
	}
	return w
}

func (w *neighbours) desired() bgp.Desired {
	d := desired(1, 2)
	d.Peers = nil
	for _, n := range w.all {
		d.Peers = append(d.Peers, n.peer)
	}
	return d
}

// meet is what comes of a child that is told of a peer.
func (w *neighbours) meet(c *task, p bgp.Peer) {
	i := slices.IndexFunc(w.all, func(n *neighbour) bool { return n.peer.Address == p.Address })
	if i < 0 {
		return
	}
	n := w.all[i]
	time.Sleep(dialTakes)
	if n.kind == silent || !w.does(c, func() { n.with, n.has = c, false }) {
		return
	}
	if n.kind == atOpen && w.kill(c, n) {
		return
	}
	time.Sleep(tableTakes)
	if w.does(c, func() { n.has, n.keeps = true, true }) && n.kind == late {
		time.Sleep(n.after)
		w.kill(c, n)
	}
}

// does does something with a session of a child that is there.
func (w *neighbours) does(c *task, what func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.dead.Load() {
		return false
	}
	what()
	return true
}

// kill ends a child, if the neighbour is hostile and the child is there.
func (w *neighbours) kill(c *task, n *neighbour) (did bool) {
	w.does(c, func() {
		if did = n.hostile; did {
			w.kills = append(w.kills, n.peer.Name)
			c.dead.Store(true)
		}
	})
	if did {
		c.Kill()
	}
	return did
}

// over ends the sessions of a child.
func (w *neighbours) over(c *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.all {
		if n.with != c {
			continue
		}
		if n.with = nil; !n.has && n.keeps { // what was stale is not kept a second time
			n.keeps, n.lost = false, n.lost+1
		}
	}
}

// turn has all that are hostile by kind be it, or none.
func (w *neighbours) turn(hostile bool) {
	w.mu.Lock()
	w.kills = nil
	var open []*neighbour
	for _, n := range w.all {
		n.hostile = hostile && n.kind != good
		if n.hostile && n.kind == atOpen && n.with != nil {
			open = append(open, n)
		}
	}
	w.mu.Unlock()
	for _, n := range open {
		if c := n.session(w); c != nil {
			w.kill(c, n)
		}
	}
}

func (n *neighbour) session(w *neighbours) *task {
	w.mu.Lock()
	defer w.mu.Unlock()
	return n.with
}

// link is that of the child's session with a peer.
func (w *neighbours) link(c *task, p bgp.Peer) (l bgp.Link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.Peer = p.Address
	for _, n := range w.all {
		if n.peer.Address == p.Address && n.with == c {
			l.Session, l.Written, l.Sent = 1, n.has, 9
			if n.has {
				l.Arrived = 9
			}
		}
	}
	return l
}

// wrong tells which of the neighbours that answer lack something.
func (w *neighbours) wrong(c *task) (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.all {
		if n.kind != silent && (n.with != c || !n.has) {
			out = append(out, n.peer.Name)
		}
	}
	return out
}

func (w *neighbours) killed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.kills)
}

// lost is how often those of a kind lost what they kept.
func (w *neighbours) lost(kind kindOf) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.kind == kind {
			n += one.lost
		}
	}
	return n
}

// among runs a test with a speaker that announces to neighbours, once it has for long.
func among(t *testing.T, n *neighbours, test func(*testing.T, *world, *Speaker)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world, s *Speaker) {
		w.among(n)
		apply(t, s, n.desired(), nil)
		time.Sleep(2 * steadyAfter)
		if wrong := n.wrong(w.last()); wrong != nil {
			t.Fatalf("%v have not everything to begin with", wrong)
		}
		test(t, w, s)
	})
}
