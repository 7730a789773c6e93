// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"slices"
	"testing"

	"fairlead.io/fairlead/sim/check"
	"fairlead.io/fairlead/sim/event"
	"fairlead.io/fairlead/sim/guest/start"
)

// tale is a history of a rule. The fine ones break no rule, and put theirs to the test; the others break it.
type tale struct {
	rule, name string
	broken     bool
	tell       func(*story)
	sockets    bool // policies and ClusterIPs are served at sockets
	tunnels    bool // policies lead by tunnels
	probes     bool // or to listed addresses, which are probed
}

func fine(rule, name string, tell func(*story)) tale { return tale{rule: rule, name: name, tell: tell} }
func breaks(rule, name string, tell func(*story)) tale {
	return tale{rule: rule, name: name, broken: true, tell: tell}
}

func tales() []tale {
	return slices.Concat(recordTales(), rescueTales(), outsideTales(), routeTales(), audienceTales(), aggregateTales(), trafficTales(), weightTales(), segmentTales(), moveTales(), kubernetesTales(), livenessTales(), wishTales(), socketTales(), tunnelTales(), probeTales(), endpointTales(), spareTales(), speakerTales(), revokeTales(), groupTales(), folderTales(), strayTales())
}

// judged tells a tale and gives the rules that it broke.
func judged(t fataler, x tale, noise func(*story)) (*story, []string) {
	s := newStoryOf(t, noise, start.Sockets{Policies: x.sockets, ClusterIPs: x.sockets, Tunnels: x.tunnels, Probes: x.probes})
	s.begin()
	x.tell(s)
	s.set.Finish(s.now)
	var rules []string
	for _, v := range s.broken {
		rules = append(rules, v.Rule)
	}
	slices.Sort(rules)
	return s, slices.Compact(rules)
}

func TestRulesAreFineWithFineHistoriesAndBreakWithOthers(t *testing.T) {
	for _, x := range tales() {
		t.Run(x.rule+"/"+x.name, func(t *testing.T) {
			s, rules := judged(t, x, nil)
			switch {
			case !x.broken && len(rules) > 0:
				t.Errorf("broken by a fine history:\n%s", s.describe())
			case !x.broken && s.set.Counts()[x.rule] == 0:
				t.Errorf("the history puts %s to no test", x.rule)
			case x.broken && !slices.Contains(rules, x.rule):
				t.Errorf("not seen to be broken; others: %s", s.describe())
			}
			for _, v := range s.broken {
				if v.Rule == x.rule && len(v.Events) == 0 && x.rule != "L1" && x.rule != "L2" {
					t.Errorf("no event shows %s", v)
				}
			}
		})
	}
}

// Every rule that can be checked has a history that it finds broken.
func TestEveryRuleIsSeenBroken(t *testing.T) {
	for _, r := range check.Rules() {
		if r.Missing == "" && !slices.ContainsFunc(tales(), func(x tale) bool { return x.rule == r.ID && x.broken }) {
			t.Errorf("no history breaks %s", r.ID)
		}
	}
}

// Equal events give equal violations, to the letter.
func TestEqualHistoriesAreJudgedAlike(t *testing.T) {
	for _, x := range tales() {
		a, _ := judged(t, x, nil)
		b, _ := judged(t, x, nil)
		if a.describe() != b.describe() {
			t.Errorf("%s/%s:\n%s\nthen\n%s", x.rule, x.name, a.describe(), b.describe())
		}
	}
}

// What has nothing to do with a rule changes nothing of what it says: such events, after every event of every history.
func TestIrrelevantEventsChangeNoVerdict(t *testing.T) {
	irrelevant := []event.Event{
		event.Log{Process: "m1", Text: "hello"}, event.Message{From: "m1", To: "m2", What: "data"},
		event.FaultBegan{ID: 1000, Fault: "lamp", On: []string{"elsewhere"}}, event.FaultEnded{ID: 1000}, event.MachineDown{Machine: "elsewhere"},
		event.Session{Switch: "switch-z", Member: "m9", Up: true},
		event.Object{Kind: "Lease", Namespace: "kube-node-lease", Name: "n1", By: "kubelet", Verb: "update", JSON: []byte("{}")},
		event.Flow{Client: "c9", Address: addr("203.0.113.77"), Port: 1}, event.Viewed{Process: "elsewhere"},
		event.Contact{Process: "m1", Life: 1, Quorum: true},
	}
	for _, x := range tales() {
		_, plain := judged(t, x, nil)
		n := 0
		s, noisy := judged(t, x, func(s *story) {
			if n++; n > 45 { // once the world has begun
				s.say(irrelevant...)
			}
		})
		if !slices.Equal(plain, noisy) {
			t.Errorf("%s/%s breaks %v, and %v with irrelevant events in between: %s", x.rule, x.name, plain, noisy, s.describe())
		}
	}
}
