// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/cluster/store"
	"fairlead.io/fairlead/internal/testkit"
)

// honest is a server that loses nothing: its term grows, and so does the position at which its log ends.
type honest struct {
	t    *rapid.T
	term uint64
	log  []uint64 // the terms of its entries
	led  []uint64 // the terms that it led: its senders of each may send still
	lead bool
	sent []word
}

// word is something that it told, and how another member hears of it.
type word struct {
	command any // nil for an answer
	heard   func(*memory)
	waits   int // how many others may be heard before it that were told later
}

func (h *honest) draw(from, to int, what string) int {
	return rapid.IntRange(from, to).Draw(h.t, what)
}

func (h *honest) at(index int) store.Position {
	if index == 0 {
		return store.Position{}
	}
	return store.Position{Term: h.log[index-1], Index: uint64(index)}
}

func (h *honest) last() store.Position { return h.at(len(h.log)) }

func (h *honest) say(command any) {
	h.sent = append(h.sent, word{command, func(m *memory) { m.asks(command) }, h.draw(0, 12, "waits")})
}

func (h *honest) header() raft.RPCHeader { return raft.RPCHeader{ID: []byte("b")} }

// askFirst asks whether it would get a vote.
func (h *honest) askFirst() {
	last := h.last()
	h.say(&raft.RequestPreVoteRequest{RPCHeader: h.header(), Term: h.term + 1, LastLogTerm: last.Term, LastLogIndex: last.Index})
}

// ask asks for votes, and may win.
func (h *honest) ask() {
	last := h.last()
	h.term++
	h.say(&raft.RequestVoteRequest{RPCHeader: h.header(), Term: h.term, LastLogTerm: last.Term, LastLogIndex: last.Index})
	if h.lead = rapid.Bool().Draw(h.t, "wins"); h.lead {
		h.led = append(h.led, h.term)
		h.log = append(h.log, h.term)
	}
}

// write has it add entries of its own, while it leads.
func (h *honest) write() {
	for range h.draw(1, 3, "entries") {
		if h.lead {
			h.log = append(h.log, h.term)
		}
	}
}

// follow has another one of a later term replace the end of its log by something that goes further.
func (h *honest) follow() {
	h.lead, h.term = false, h.term+uint64(h.draw(1, 3, "terms"))
	kept := h.draw(0, len(h.log), "kept")
	log := append([]uint64(nil), h.log[:kept]...)
	for in := h.at(kept).Term; len(log) < kept+3; {
		if in = uint64(h.draw(int(in), int(h.term), "term of an entry")); slices.Contains(h.led, in) {
			in = h.term // nobody but itself writes entries of a term that it led
		}
		log = append(log, in)
	}
	if old, index := h.last(), uint64(len(log)); (store.Position{Term: log[index-1], Index: index}).Before(old) {
		log = append(log, h.term)
	}
	h.log = log
}

// send has a sender of one of its leaderships, which may be over, send a part of what its log holds, or a snapshot.
func (h *honest) send() {
	if len(h.led) == 0 {
		return
	}
	term := rapid.SampledFrom(h.led).Draw(h.t, "leadership")
	to := h.draw(0, len(h.log), "up to")
	from := h.draw(0, to, "from")
	if rapid.Bool().Draw(h.t, "snapshot") {
		h.say(&raft.InstallSnapshotRequest{RPCHeader: h.header(), Term: term, LastLogTerm: h.at(to).Term, LastLogIndex: uint64(to)})
		return
	}
	h.say(h.entries(term, from, to))
}

func (h *honest) entries(term uint64, from, to int) *raft.AppendEntriesRequest {
	m := &raft.AppendEntriesRequest{RPCHeader: h.header(), Term: term, PrevLogTerm: h.at(from).Term, PrevLogEntry: uint64(from)}
	for i := from + 1; i <= to; i++ {
		m.Entries = append(m.Entries, &raft.Log{Index: uint64(i), Term: h.at(i).Term})
	}
	return m
}

// acknowledge answers whoever leads it.
func (h *honest) acknowledge() {
	to := h.draw(0, len(h.log), "up to")
	args, resp := h.entries(h.term, h.draw(0, to, "from"), to), &raft.AppendEntriesResponse{Term: h.term, Success: true}
	h.sent = append(h.sent, word{nil, func(m *memory) { m.acknowledges("b", args, resp) }, h.draw(0, 12, "waits")})
}

// deliver gives what was said in an order in which it may arrive.
func (h *honest) deliver() []word {
	at := make([]int, len(h.sent))
	order := make([]int, len(h.sent))
	for i, w := range h.sent {
		at[i], order[i] = i+w.waits, i
	}
	slices.SortStableFunc(order, func(i, j int) int { return at[i] - at[j] })
	var out []word
	for _, i := range order {
		out = append(out, h.sent[i])
	}
	return out
}

// Whoever loses nothing is never taken for one whose disk was rolled back, in whatever order others hear what it said.
func TestPropertyWhoLosesNothingIsNotTakenForOlder(t *testing.T) {
	late := 0
	missing := func() string {
		if late < 20 {
			return fmt.Sprintf("only %d candidacies came behind what was told later", late)
		}
		return ""
	}
	testkit.CheckUntil(t, missing, func(t *rapid.T) {
		h := &honest{t: t, term: 1}
		for range rapid.IntRange(5, 40).Draw(t, "steps") {
			rapid.SampledFrom([]func(){h.askFirst, h.ask, h.write, h.follow, h.send, h.send, h.acknowledge}).Draw(t, "step")()
		}
		var m memory
		for _, w := range h.deliver() {
			if last, _, ok := candidacy(w.command); ok && last.Before(m.of("b").Last) {
				late++
				if m.less(w.command) {
					t.Fatalf("%+v is refused by one who knows %+v", w.command, m.of("b"))
				}
			}
			w.heard(&m)
		}
	})
}
