// SPDX-License-Identifier: Apache-2.0

package bgp

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

var testRules = Rules{DemoteAfter: 3 * time.Second, Quiet: time.Second, RestartWindow: 10 * time.Second}

// verdict reads the rules off a whole history, without remembering anything from look to look: the last situation is
// the one asked about.
func verdict(h []Situation) (open, demoted, fromStored bool) {
	lost := func(x Situation) bool { return x.Contact.Silence > testRules.DemoteAfter }
	stale := func(x Situation) bool { return x.Stored != nil && x.Record.Compare(*x.Stored) < 0 }
	// firstCommit returns the first commit index learned from look i on, and where it was learned.
	firstCommit := func(i int) (uint64, int) {
		for ; i < len(h); i++ {
			if h[i].Contact.Commit > 0 {
				return h[i].Contact.Commit, i
			}
		}
		return 0, len(h)
	}
	caughtUp := func(from int) int { // the look at which the commit index first learned from there on was applied
		goal, i := firstCommit(from)
		for ; i < len(h); i++ {
			if h[i].Contact.Applied >= goal && !stale(h[i]) {
				return i
			}
		}
		return len(h)
	}
	opened, byRecord := caughtUp(0), true
	for i, x := range h {
		if i < opened && x.Stored != nil && x.Now-h[0].Now >= testRules.RestartWindow {
			opened, byRecord = i, false
			break
		}
	}
	if opened == len(h) {
		return false, false, false
	}
	last := h[len(h)-1]
	setBack := -1 // the last look that cost the rank
	if !byRecord {
		setBack = opened
	}
	for i := opened; i < len(h); i++ {
		if lost(h[i]) {
			setBack = i
		}
	}
	if setBack < 0 {
		return true, false, stale(last)
	}
	at := caughtUp(setBack + 1)
	regained := at < len(h) && last.Now-h[at].Now >= testRules.Quiet
	return true, !regained, stale(last)
}

func genHistory() *rapid.Generator[[]Situation] {
	return rapid.Custom(func(t *rapid.T) []Situation {
		var stored *Revision
		if rapid.Bool().Draw(t, "stored") {
			stored = &Revision{rapid.Uint64Range(1, 2).Draw(t, "stored epoch"), rapid.Uint64Range(1, 6).Draw(t, "stored index")}
		}
		x := Situation{Record: Revision{1, 1}, Stored: stored, Contact: Contact{Silence: Never, Applied: 1}}
		var h []Situation
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			step := rapid.SampledFrom([]time.Duration{100, 300, 500, 1000, 1500, 4000}).Draw(t, "step") * time.Millisecond
			x.Now += step
			switch rapid.SampledFrom([]string{"heard", "heard", "heard", "silent", "silent"}).Draw(t, "contact") {
			case "heard":
				x.Contact.Silence = rapid.SampledFrom([]time.Duration{0, time.Second, 3 * time.Second}).Draw(t, "silence")
				x.Contact.Commit += rapid.Uint64Range(0, 2).Draw(t, "commit")
			default:
				if x.Contact.Silence != Never {
					x.Contact.Silence += step
				}
			}
			x.Contact.Applied = min(x.Contact.Applied+rapid.Uint64Range(0, 3).Draw(t, "apply"), max(x.Contact.Commit, x.Contact.Applied))
			x.Record.Index = x.Contact.Applied
			if rapid.IntRange(0, 15).Draw(t, "new epoch") == 0 {
				x.Record.Epoch++
			}
			h = append(h, x)
		}
		return h
	})
}

// The rules, look by look, say what they say about the whole history.
func TestPropertyStandingFollowsTheRules(t *testing.T) {
	testkit.Check(t, func(t *rapid.T) {
		h := genHistory().Draw(t, "history")
		var s Standing
		for i, x := range h {
			got := s.Look(testRules, x)
			open, demoted, fromStored := verdict(h[:i+1])
			if got.Open != open || got.Demoted != demoted || got.FromStored != fromStored {
				t.Fatalf("look %d at %s: open=%t demoted=%t stored=%t (%s), want open=%t demoted=%t stored=%t", i, x.Now,
					got.Open, got.Demoted, got.FromStored, got.Reason, open, demoted, fromStored)
			}
		}
	})
}

// look is one line of a story: what is the case, and what the rules shall say.
type look struct {
	at      float64 // seconds
	silence float64 // negative: never heard
	commit  uint64
	applied uint64
	want    string
}

func TestStandingStories(t *testing.T) {
	stored := &Revision{1, 100}
	stories := map[string]struct {
		stored *Revision
		looks  []look
	}{
		"a new member opens once it has applied what the leader had": {nil, []look{
			{0, -1, 0, 0, "closed"},
			{1, 0.1, 50, 20, "closed"},
			{2, 0.1, 60, 50, "open"}, // what came since then comes while it announces
		}},
		"a member alone announces what it announced last, behind all others, and never before the window": {stored, []look{
			{0, -1, 0, 40, "closed"},
			{9.9, -1, 0, 40, "closed"},
			{10, -1, 0, 40, "open demoted stored"},
			{100, -1, 0, 40, "open demoted stored"},
			{101, 0.1, 130, 40, "open demoted stored"}, // the leader is there: catching up
			{102, 0.1, 130, 110, "open demoted"},       // newer than what was announced
			{103, 0.1, 130, 130, "open demoted"},
			{103.9, 0.1, 131, 131, "open demoted"},
			{104, 0.1, 131, 131, "open"},
		}},
		"a member that never announced waits": {nil, []look{
			{0, -1, 0, 40, "closed"}, {1000, -1, 0, 40, "closed"},
		}},
		"an election changes nothing": {nil, []look{
			{0, 0, 5, 5, "open"}, {1, 1, 5, 5, "open"}, {2.9, 2.9, 5, 5, "open"}, {3, 0, 5, 5, "open"}, {4, 0, 9, 5, "open"},
		}},
		"a member cut off steps aside and returns when it has caught up and contact holds": {nil, []look{
			{0, 0, 5, 5, "open"},
			{3, 3, 5, 5, "open"},
			{3.1, 3.1, 5, 5, "open demoted"},
			{60, 60, 5, 5, "open demoted"},
			{61, 0, 80, 5, "open demoted"},
			{63, 0, 81, 79, "open demoted"},
			{64, 0, 82, 80, "open demoted"},
			{64.9, 0, 99, 80, "open demoted"},
			{65, 0, 99, 80, "open"},
		}},
		"contact that breaks again starts the quiet time anew": {nil, []look{
			{0, 0, 5, 5, "open"},
			{4, 4, 5, 5, "open demoted"},
			{5, 0, 6, 6, "open demoted"},
			{5.5, 3.5, 6, 6, "open demoted"},
			{6, 0, 7, 7, "open demoted"},
			{6.9, 0, 7, 7, "open demoted"},
			{7, 0, 7, 7, "open"},
		}},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			var s Standing
			for _, l := range story.looks {
				x := Situation{
					Now:     time.Duration(l.at * float64(time.Second)),
					Contact: Contact{Silence: Never, Commit: l.commit, Applied: l.applied},
					Record:  Revision{1, l.applied}, Stored: story.stored,
				}
				if l.silence >= 0 {
					x.Contact.Silence = time.Duration(l.silence * float64(time.Second))
				}
				if got := s.Look(testRules, x).String(); got != l.want {
					t.Errorf("at %g s: %s (%s), want %s", l.at, got, s.Look(testRules, x).Reason, l.want)
				}
			}
		})
	}
}
