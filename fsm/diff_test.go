// SPDX-License-Identifier: Apache-2.0

package fsm_test

import (
	"fmt"
	"slices"
	"testing"

	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/fsm/fsmtest"
)

// People read of each difference what it is about and which fields it is in, and of nothing that nobody decided.
func TestDifferencesSayWhatTheyAreIn(t *testing.T) {
	made := func(cs ...fsm.Command) *fsm.View {
		s := fsm.New()
		fsmtest.Tell(t, s, append([]fsm.Command{&fsm.InitGroup{Group: "g", Format: fsm.NewestFormat}}, cs...)...)
		return s.Read()
	}
	a := made(
		&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Version: "0.1", Run: "r"},
		&fsm.PutNode{ID: "n1", UID: "u", Version: 1}, &fsm.PutNode{ID: "n2", UID: "u", Version: 1},
	)
	b := made(
		&fsm.ReportMember{Server: "m1", Name: "m1", Format: fsm.NewestFormat, Version: "0.2", Run: "s"},
		&fsm.PutNode{ID: "n1", UID: "u", Version: 2, Eligible: true}, &fsm.PutNode{ID: "n3", UID: "u", Version: 1},
		&fsm.PutSettings{Settings: fsm.Settings{HistoryLimit: 4}},
	)
	listed, more := fsm.Diff(a, b, 10)
	var have []string
	for _, d := range listed {
		have = append(have, fmt.Sprint(d))
	}
	want := []string{
		"group: changed (settings)", "member m1: changed (version, run)", "node n1: changed (version, eligible)", "node n2: removed", "node n3: added",
	}
	if !slices.Equal(have, want) || more != 0 {
		t.Errorf("differences are %q and %d more, want %q", have, more, want)
	}
	if listed, more = fsm.Diff(a, b, 3); len(listed) != 3 || more != 2 {
		t.Errorf("of 5 differences 3 are listed: %v and %d more", listed, more)
	}

	s := fsm.New()
	fsmtest.Tell(t, s, &fsm.InitGroup{Group: "g", Format: fsm.NewestFormat})
	before := s.Read()
	fsmtest.Tell(t, s, &fsm.Checkpoint{Index: before.Revision().Index, Digest: s.Digest()})
	if listed, _ := fsm.Diff(before, s.Read(), 10); len(listed) > 0 {
		t.Errorf("after a comparison of the copies %v are said to differ", listed)
	}
}
