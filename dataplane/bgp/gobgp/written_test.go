// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/apiutil"
	wire "github.com/osrg/gobgp/v4/pkg/packet/bgp"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/internal/testkit"
)

// writer is what GoBGP does with what it is told for one peer that is sent all paths: it keeps all in order, takes some of it, packs
// it, writes it, and tells so some time later.
type writer struct {
	paths map[pathOf]bool // that it has
	queue []message
	told  []message // written, and not yet told of
}

type pathOf struct {
	prefix netip.Prefix
	id     uint32
}

// message is a change of a path, End-of-RIB of a family, or, where it is written, what is in one UPDATE.
type message struct {
	path pathOf
	ends bgp.Family
}

func (w *writer) table() {
	for p := range w.paths {
		w.queue = append(w.queue, message{path: p})
	}
	w.queue = append(w.queue, message{ends: bgp.IPv4}, message{ends: bgp.IPv6})
}

// write packs the first n messages: of those of one path only the last counts, and ends come last, each once.
func (w *writer) write(n int) {
	last, ends := map[pathOf]int{}, map[bgp.Family]bool{}
	for i, m := range w.queue[:n] {
		if m.ends != 0 {
			ends[m.ends] = true
		} else {
			last[m.path] = i
		}
	}
	for i, m := range w.queue[:n] {
		if m.ends == 0 && last[m.path] == i {
			w.told = append(w.told, m)
		}
	}
	for f := range ends {
		w.told = append(w.told, message{ends: f})
	}
	w.queue = w.queue[n:]
}

// tell gives the next thing that was written to a queue of ours.
func (w *writer) tell(q *queue, now time.Time) {
	if m := w.told[0]; m.ends != 0 {
		q.wroteEnd(m.ends, now)
	} else {
		q.wrote(update{announced: []numbered{{m.path.prefix, m.path.id}}, nextHop: addr(hop1)}, now)
	}
	w.told = w.told[1:]
}

// However GoBGP packs, and however late it is told of, even where all stands still for a while, a queue to a peer that keeps our paths over
// restarts is empty when all has been told of, and never before.
func TestPropertyAQueueIsEmptyWhenAllIsWritten(t *testing.T) {
	with := capabilities{Families: []bgp.Family{bgp.IPv4, bgp.IPv6}, AddPath: []bgp.Family{bgp.IPv4, bgp.IPv6}, Restart: true}
	const hold = time.Hour
	testkit.Check(t, func(rt *rapid.T) {
		now := time.Now()
		q, w := newQueue(now), &writer{paths: map[pathOf]bool{{prefix(vip), 1}: true}}
		w.table()
		sure := func(what string) {
			if done := len(w.queue)+len(w.told) == 0; q.empty(now, with, hold) != done {
				rt.Fatalf("after %s it is empty: %t, with %v and %v to come", what, !done, w.queue, w.told)
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "acts") {
			sure("an act")
			switch act := rapid.SampledFrom([]string{"change", "table", "write", "tell", "stand"}).Draw(rt, "act"); act {
			case "change":
				change(rt, q, w, with, now)
			case "table":
				if q.empty(now, with, hold) {
					q.putTable(now)
					w.table()
				}
			case "write":
				w.write(rapid.IntRange(0, len(w.queue)).Draw(rt, "taken"))
			case "tell":
				if len(w.told) > 0 {
					w.tell(q, now)
				}
			case "stand":
				now = now.Add(rapid.SampledFrom([]time.Duration{time.Millisecond, 2 * still, hold / 100}).Draw(rt, "time"))
			}
		}
		for w.write(len(w.queue)); len(w.told) > 0; w.tell(q, now) {
			sure("some was told of")
		}
		sure("all was told of")
	})
}

// change tells GoBGP of a round of changes, where the queue may have them.
func change(rt *rapid.T, q *queue, w *writer, with capabilities, now time.Time) {
	r := round{kind: comes}
	for id := range uint32(3) {
		for _, of := range []string{vip, "203.0.113.11/32", vip6} {
			if rapid.Bool().Draw(rt, fmt.Sprint(of, id)) {
				r.steps = append(r.steps, bgp.Step{Action: bgp.AddPath, Path: bgp.Path{Prefix: prefix(of), PathID: id}})
			}
		}
	}
	if q.meets(r, with) {
		return
	}
	q.putAll(r, with, now)
	for _, step := range r.steps {
		p := pathOf{step.Path.Prefix, step.Path.PathID}
		w.paths[p] = true
		w.queue = append(w.queue, message{path: p})
	}
}

// What counts as written without certainty does so once nothing has moved for a while, and everything once the session cannot be open.
func TestQueueThatDoesNotMoveIsEmptyInTheEnd(t *testing.T) {
	sure := capabilities{Families: []bgp.Family{bgp.IPv4, bgp.IPv6}, Restart: true}
	unsure := capabilities{Families: sure.Families}
	const hold = 90 * time.Second
	now := time.Now()
	about := func(of string) update {
		return update{announced: []numbered{{prefix: prefix(of)}}, nextHop: addr(hop1)}
	}
	ended := func(q *queue) { q.wroteEnd(bgp.IPv4, now); q.wroteEnd(bgp.IPv6, now) }
	for name, c := range map[string]struct {
		with  capabilities
		do    func(*queue)
		after time.Duration
	}{
		"a table":                           {sure, func(*queue) {}, hold + 1},
		"a table, of which one family came": {sure, func(q *queue) { q.wroteEnd(bgp.IPv4, now) }, hold + 1},
		"a table that came":                 {sure, ended, 0},
		"a table without End-of-RIB":        {unsure, func(*queue) {}, still},
		"two tables, of which one came":     {sure, func(q *queue) { q.putTable(now); ended(q) }, still},
		"a change":                          {sure, func(q *queue) { ended(q); q.empty(now, sure, hold); q.put(prefix(vip), true, now) }, hold + 1},
		"a change that may be none":         {sure, func(q *queue) { ended(q); q.empty(now, sure, hold); q.put(prefix(vip), false, now) }, still},
		"a change behind a table":           {sure, func(q *queue) { q.put(prefix(vip), false, now); ended(q) }, still},
		"a change behind its table's":       {sure, func(q *queue) { q.put(prefix(vip), false, now); q.wrote(about(vip), now); ended(q) }, still},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(now)
			c.do(q)
			empty := func(at time.Time) bool { return q.empty(at, c.with, hold) }
			if c.after > 0 && lookedAt(now, c.after-1, empty) {
				t.Error("it is empty before its time")
			}
			if !empty(now.Add(c.after)) {
				t.Errorf("it is not empty after %s", c.after)
			}
		})
	}
}

// GoBGP may have written a table before it tells that the session with the peer is open.
func TestTableWrittenBeforeTheSessionIsKnownCounts(t *testing.T) {
	parallel(t)
	s := dialler(t, 0)
	peer := addr("192.0.2.101")
	key := slog.StringValue(peer.String())
	s.onUp(attributes{"Key": key})
	s.onWritten(attributes{"Key": key})
	s.onEvent(&apiutil.WatchEventMessage_PeerEvent{Type: apiutil.PEER_EVENT_STATE, Peer: apiutil.Peer{
		State: apiutil.PeerState{NeighborAddress: peer, SessionState: wire.BGP_FSM_ESTABLISHED},
	}}, time.Now())
	if n := s.session(peer); !n.empty(time.Now(), capabilities{Families: []bgp.Family{bgp.IPv4}, Restart: true}, time.Hour) {
		t.Error("the table counts as on its way")
	}
}

func TestEndOfRIBIsKnown(t *testing.T) {
	unreach := func(f wire.Family, nlri ...wire.PathNLRI) []wire.PathAttributeInterface {
		a, err := wire.NewPathAttributeMpUnreachNLRI(f, nlri)
		if err != nil {
			t.Fatal(err)
		}
		return []wire.PathAttributeInterface{a}
	}
	for name, c := range map[string]struct {
		about attributes
		of    bgp.Family
	}{
		"IPv4":            {attributes{}, bgp.IPv4},
		"IPv6":            {attributes{"attributes": slog.AnyValue(unreach(wire.RF_IPv6_UC))}, bgp.IPv6},
		"another family":  {attributes{"attributes": slog.AnyValue(unreach(wire.RF_EVPN))}, 0},
		"IPv4 withdrawal": {attributes{"withdrawals": slog.AnyValue(written(t, vip))}, 0},
		"IPv6 withdrawal": {attributes{"attributes": slog.AnyValue(unreach(wire.RF_IPv6_UC, written(t, vip6)...))}, 0},
		"a path":          {attributes{"nlri": slog.AnyValue(written(t, vip))}, 0},
	} {
		if of, ok := endOfRIB(c.about); of != c.of || ok != (c.of != 0) {
			t.Errorf("%s: End-of-RIB of family %v, %t", name, of, ok)
		}
	}
}

// GoBGP has agreed with a peer on the families that both name, or on IPv4 where the peer names none.
func TestAgreedFamilies(t *testing.T) {
	parallel(t)
	for _, families := range [][]bgp.Family{{bgp.IPv4}, {bgp.IPv6}, {bgp.IPv4, bgp.IPv6}} {
		sw, s := startSwitch(t, 1), dialler(t, 0)
		peer := switchPeer(sw)
		peer.Families = families
		apply(t, s, bgp.Desired{Peers: []bgp.Peer{peer}})
		testkit.Until(t, "the session", func() bool { return s.session(peer.Address) != nil })
		peers, err := s.listPeers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := negotiated(peers[peer.Address]).Families; !slices.Equal(got, families) {
			t.Errorf("families are %v, want %v", got, families)
		}
	}
}

// Where GoBGP writes something else than it was told to, here an announcement where a path goes, that counts as written no sooner than the
// switch has lost it for sure, which takes a new session.
func TestWhatGoBGPWritesInsteadIsNotWritten(t *testing.T) {
	parallel(t)
	for _, most := range []uint8{0, 1} {
		t.Run(fmt.Sprintf("send-max-%d", most), func(t *testing.T) {
			parallel(t)
			s := dialler(t, 0)
			tell := s.logger.written
			s.logger.written = func(about attributes) { // before any session: GoBGP's goroutines read it
				if gone, _ := about["withdrawals"].Any().([]wire.PathNLRI); len(gone) > 0 {
					hop, err := wire.NewPathAttributeNextHop(addr(hop1))
					if err != nil {
						t.Error(err)
					}
					about["nlri"], about["withdrawals"] = about["withdrawals"], slog.AnyValue([]wire.PathNLRI(nil))
					about["attributes"] = slog.AnyValue([]wire.PathAttributeInterface{hop})
				}
				tell(about)
			}
			sw, d := joinSwitch(t, s, most)
			d.Paths = bgp.NewPaths(path(vip, hop1), path("203.0.113.11/32", hop1))
			apply(t, s, d)
			waitRIB(t, sw, merged([]bgp.Desired{d}))
			since := sw.Peers()[0].Since
			d.Paths = bgp.NewPaths(path(vip, hop1))
			apply(t, s, d)
			if now := sw.Peers()[0].Since; now.Equal(since) {
				t.Error("the session was not restarted")
			}
			waitRIB(t, sw, merged([]bgp.Desired{d}))
		})
	}
}

// A peer that takes one family is sent nothing of the other, so that changes of it are not waited for: neither for hours nor at all.
func TestWhatAPeerIsNotSentIsNotWaitedFor(t *testing.T) {
	parallel(t)
	for _, most := range []uint8{0, 1} {
		t.Run(fmt.Sprintf("send-max-%d", most), func(t *testing.T) {
			parallel(t)
			_, s, d := withSwitch(t, most, bgp.IPv4)
			for _, paths := range [][]bgp.Path{{path(vip6, "2001:db8::1")}, {path(vip6, "2001:db8::2")}, {path(vip, hop1), path(vip6, "2001:db8::1")}, {path(vip, hop1)}, {}} {
				d.Paths = bgp.NewPaths(paths...)
				apply(t, s, d)
				testkit.Until(t, fmt.Sprint(paths, " to be written"), func() bool { l, there := link(t, s); return there && l.Written })
			}
		})
	}
}
