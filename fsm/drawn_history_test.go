// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"maps"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/fsm"
)

// history is a State, the model of it and the outside, fed with the same log.
type history struct {
	state   *fsm.State
	model   *model
	outside *outside
	next    fsm.Index // of the entry being made
	about   string    // the nouns that commands are drawn of

	// What came of the log so far, for other States to be compared with.
	log      []fsm.LogEntry
	outcomes [][]fsm.Outcome
	digests  []digestAt
}

type digestAt struct {
	index  fsm.Index
	digest fsm.Digest
}

// newHistory begins with a group, so that draws are not wasted on what nothing can follow.
func newHistory(t *rapid.T) *history {
	w := &history{state: fsm.New(), model: newModel(), outside: newOutside()}
	groups := []fsm.GroupID{among(t, "first group", []fsm.GroupID{"g1", "g2"}), "g1"}
	settings := []fsm.Settings{drawSettings(t), {HistoryLimit: 3, GraveLimit: 3}}
	for i := range groups { // the first may be refused, or may be the one
		w.entry(t, w.model.now.Epoch, 1, func() fsm.Command {
			return &fsm.InitGroup{Group: groups[i], Format: rapid.Uint32Range(1, fsm.NewestFormat).Draw(t, "format"), Settings: settings[i]}
		})
	}
	return w
}

// themes are what a history may mostly be about.
var themes = []string{"all", "addresses", "ports", "nodes", "backends", "balancers", "numbers", "rest"}

// run draws and applies a history that is for some time about a few nouns, now and then in a new epoch.
func (w *history) run(t *rapid.T, most int, theme string) {
	w.about = rapid.SampledFrom([]string{theme, theme, "all", rapid.SampledFrom(themes).Draw(t, "another theme")}).Draw(t, "about")
	switch epochs := rapid.IntRange(0, 5).Draw(t, "epochs"); {
	case epochs == 5:
		w.entry(t, w.model.now.Epoch, 1, func() fsm.Command {
			return &fsm.NewEpoch{Group: w.model.group, Epoch: w.model.now.Epoch + 1, Cause: "test"}
		})
	case epochs > 2 && w.model.quarantined():
		w.entry(t, w.model.now.Epoch, 1, func() fsm.Command { return &fsm.EndQuarantine{Since: w.model.quarantine} })
	}
	for range rapid.IntRange(0, most).Draw(t, "entries") {
		w.next += fsm.Index(rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "gap"))
		epoch := w.model.now.Epoch
		if rapid.IntRange(0, 19).Draw(t, "proposed in another epoch") == 19 {
			epoch--
		}
		count := rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "commands of the entry")
		w.entry(t, epoch, count, func() fsm.Command { return w.draw(t) })
	}
}

// entry makes one of drawn commands, each drawn after the model applied those before it, and applies it. Both
// must allow the same commands and hold the same afterwards.
func (w *history) entry(t *rapid.T, epoch fsm.Epoch, count int, draw func() fsm.Command) {
	w.next++
	w.model.turn(w.next)
	var proposals []fsm.Proposal
	var want []fsm.Outcome
	changing := false // may an entry of refusals change the record: marks are taken one by one
	for range count {
		c := draw()
		switch c.(type) {
		case *fsm.Acknowledge, *fsm.ReportAnnounced, *fsm.ReportSessions, *fsm.ReportAbsences, *fsm.ReportHosts:
			changing = true
		}
		proposals = append(proposals, fsm.Proposal{Actor: "test", Reason: "property", AtUnixMilli: int64(w.next), Command: c})
		before := *w.model
		before.bindings, before.balancers = maps.Clone(before.bindings), maps.Clone(before.balancers)
		if w.model.apply(epoch, c) {
			changing = true
			want = append(want, fsm.Outcome{Revision: w.model.now})
			w.outside.saw(t, &before, c)
		} else {
			want = append(want, fsm.Outcome{Reject: 1})
		}
	}
	data, err := fsm.EncodeEntry(epoch, proposals)
	if err != nil {
		t.Fatal(err)
	}
	e := fsm.LogEntry{Index: w.next, Term: 1 + uint64(w.next)/10, Data: data}
	before := w.state.Digest()
	got := w.state.ApplyEntries([]fsm.LogEntry{e})[0]
	for i, o := range got {
		if (o.Reject == fsm.Accepted) != (want[i].Reject == fsm.Accepted) {
			t.Fatalf("entry %d, %T %+v\n of epoch %d: the record says %v, the model %v",
				w.next, proposals[i].Command, proposals[i].Command, epoch, o, want[i])
		}
		if o.Reject == fsm.Accepted && o.Revision != want[i].Revision {
			t.Fatalf("entry %d, %T: revision %v, want %v", w.next, proposals[i].Command, o.Revision, want[i].Revision)
		}
	}
	if !changing && w.state.Digest() != before {
		t.Fatalf("entry %d was refused and changed the record: %T %+v", w.next, proposals[0].Command, proposals[0].Command)
	}
	w.log, w.outcomes = append(w.log, e), append(w.outcomes, got)
	w.digests = append(w.digests, digestAt{w.next, w.state.Digest()})
}

// turn begins an entry.
func (m *model) turn(index fsm.Index) {
	m.now.Index = index
	for at, l := range m.lines {
		l.inThisTurn = false
		m.lines[at] = l
	}
}
