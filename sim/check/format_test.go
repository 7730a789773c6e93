// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// former begins a group of the older release.
func former(t *testing.T) *story {
	s := newStory(t, nil)
	for _, m := range s.members() {
		s.say(event.Started{Process: m, Life: 1, Release: start.Older})
	}
	s.commit(&fsm.InitGroup{Group: "g", Format: 1})
	return s
}

// upgraded has all members start anew, and an operator raise the format.
func upgraded(t *testing.T) *story {
	s := former(t)
	for _, m := range s.members() {
		s.say(event.Started{Process: m, Life: 2, Release: start.Current})
		s.commit(&fsm.ReportMember{Server: fsm.ServerID(m + "-1"), Name: m, Format: 2, Run: "r"})
	}
	s.commit(&fsm.RaiseFormat{Format: 2})
	return s
}

func TestFormatsAreAgreedOnBeforeTheyAreUsed(t *testing.T) {
	sticky := fsm.Service{ID: "a/web", UID: "u", Rare: &fsm.Rare{Affinity: time.Hour}}
	ranged := fsm.Service{ID: "a/web", UID: "u", Rare: &fsm.Rare{SourceRanges: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}}
	for name, x := range map[string]struct {
		tell  func() *story
		wrong bool
	}{
		"in-order": {func() *story {
			s := upgraded(t)
			s.commit(&fsm.PutService{Service: sticky})
			return s
		}, false},
		"plain": {func() *story {
			s := former(t)
			s.commit(&fsm.PutService{Service: fsm.Service{ID: "a/web", UID: "u"}}, &fsm.PutNodeConfig{Config: fsm.NodeConfig{}})
			return s
		}, false},
		"affinity-early": {func() *story {
			s := former(t)
			s.commit(&fsm.PutService{Service: sticky})
			return s
		}, true},
		"ranges-early": {func() *story {
			s := former(t)
			s.commit(&fsm.PutService{Service: ranged})
			return s
		}, true},
		"mark-early": {func() *story {
			s := former(t)
			s.commit(&fsm.PutNodeConfig{Config: fsm.NodeConfig{FwMark: 7}})
			return s
		}, true},
		"older-applies": {func() *story {
			s := upgraded(t)
			s.say(event.Started{Process: "m3", Life: 3, Release: start.Older})
			s.commit(&fsm.PutNode{ID: "n9"})
			return s
		}, true},
		"older-restores": {func() *story {
			s := upgraded(t)
			s.say(event.Started{Process: "m3", Life: 3, Release: start.Older},
				event.Restored{Process: "m3", Life: 3, Index: uint64(s.state.Applied()), Digest: s.state.Digest().String()})
			return s
		}, true},
	} {
		s := x.tell()
		s.set.Finish(s.now)
		rules := []string{}
		for _, v := range s.broken {
			rules = append(rules, v.Rule)
		}
		if x.wrong != slices.Contains(rules, "S1") || len(slices.Compact(rules)) > 1 {
			t.Errorf("%s: %v", name, s.broken)
		}
	}
}

func TestTheFormatIsRaisedInTheEnd(t *testing.T) {
	for _, want := range []uint32{0, 1, 2} {
		set, err := check.New(check.Options{Rules: []string{"L1"}, Format: want})
		if err != nil {
			t.Fatal(err)
		}
		entry, err := fsm.EncodeEntry(0, []fsm.Proposal{{Command: &fsm.InitGroup{Group: "g", Format: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		set.Hear(event.Stamped{Number: 1, Event: event.Applied{Process: "m1", Life: 1, Index: 1, Term: 1, Entry: entry}})
		set.Hear(event.Stamped{Number: 2, Event: event.Calm{}})
		if broken := set.Finish(40 * time.Second); (len(broken) > 0) != (want == 2) {
			t.Errorf("format %d: %v", want, broken)
		}
	}
}
