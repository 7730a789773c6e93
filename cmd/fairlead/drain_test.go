// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
)

const (
	drainBegun = `{"name":"node/n1","of":"node","subject":"n1","since":{"epoch":1,"index":90},"done":false,"left":[` +
		`{"prefix":"203.0.113.10/32","node":"n1","address":"192.0.2.1","state":"withdrawing","waitsFor":["m2"],"why":"not withdrawn yet, or a switch may hold it still, by m2"}]}`
	drainOver  = `{"name":"node/n1","of":"node","subject":"n1","since":{"epoch":1,"index":90},"done":true,"left":[],"flows":[{"node":"n1","open":12,"busy":0,"ageMs":0,"why":""}]}`
	drainFlows = `{"name":"node/n1","of":"node","subject":"n1","since":{"epoch":1,"index":90},"done":true,"left":[],` +
		`"flows":[{"node":"n1","open":20,"busy":3,"ageMs":0,"why":""}]}`
	drainStale = `{"name":"node/n1","of":"node","subject":"n1","since":{"epoch":1,"index":90},"done":true,"left":[],` +
		`"flows":[{"node":"n1","open":20,"busy":0,"ageMs":4000,"why":""}]}`
	drainBlind = `{"name":"node/n1","of":"node","subject":"n1","since":{"epoch":1,"index":90},"done":true,"left":[],` +
		`"flows":[{"node":"n1","open":0,"busy":0,"ageMs":0,"why":"no connection tracking"}]}`
)

// stages is a record whose one document is another one at each look; the last one stays.
type stages struct {
	fakeRecord
	documents []string
	fails     int // of the first looks
}

func (s *stages) Get(context.Context, *fairleadv1.GetRequest) (*fairleadv1.GetResponse, error) {
	if s.fails > 0 {
		s.fails--
		return nil, errors.New("nobody leads at present")
	}
	now := s.documents[0]
	if len(s.documents) > 1 {
		s.documents = s.documents[1:]
	}
	return &fairleadv1.GetResponse{Documents: []string{now}, Revision: &fairleadv1.Revision{Epoch: 1, Index: 91}}, nil
}

func TestDrainIsSaidAndShown(t *testing.T) {
	w, h := newWorld(t), &heard{}
	server := w.serve(&fakeRaft{}, &stages{documents: []string{drainBegun}})
	got := w.say(h, server, "drain", "node", "n1", "--reason", "disk").mustPrint(t)
	if !strings.Contains(got, "draining:  node/n1") || !strings.Contains(got, "203.0.113.10/32 via n1 (withdrawing: not withdrawn yet") {
		t.Errorf("printed %q", got)
	}
	got = w.say(h, server, "drain", "service", "shop/web", "--undo", "-o", "json").mustPrint(t)
	if want := "{\n  \"drain\": \"service/shop/web\",\n  \"undone\": true,\n  \"done\": false,\n  \"left\": [],\n  \"flows\": []\n}\n"; got != want {
		t.Errorf("printed %q", got)
	}
	if got := strings.Join(h.said, "; "); got != "drain node n1 undo=false: disk; drain service shop/web undo=true: " {
		t.Errorf("heard %q", got)
	}
	w.say(&heard{refuse: errors.New("node n9: not-found")}, server, "drain", "node", "n9").mustFail(t, exitFailed, "drain node n9", "not-found")
	for _, args := range [][]string{{"drain", "node"}, {"drain", "node", "n1", "--undo", "--wait"}, {"drain", "node", "n1", "--timeout", "0s"},
		{"drain", "node", "n1", "--quiet-within", "-1s"}, {"drain", "service", "shop/web", "--quiet-within", "1s"}} {
		w.say(h, server, args...).mustFail(t, exitUsage, "")
	}
}

// That nobody answers for a moment is no failure of what was taken before.
func TestWhatIsTakenIsLookedAtAgain(t *testing.T) {
	w, h := newWorld(t), &heard{}
	server := w.serve(&fakeRaft{}, &stages{documents: []string{drainBegun}, fails: 1})
	ran := w.say(h, server, "drain", "node", "n1")
	if ran.code != 0 || !strings.Contains(ran.stdout, "draining:  node/n1") || !strings.Contains(ran.stderr, "drain node n1: cannot be looked at: ") {
		t.Errorf("exit %d, printed %q and %q", ran.code, ran.stdout, ran.stderr)
	}
	server = w.serve(&fakeRaft{}, &stages{documents: []string{`{"service":"shop/web","node":"n1","left":[]}`}, fails: 1})
	if ran = w.say(h, server, "move", "shop/web", "n1"); ran.code != 0 || !strings.Contains(ran.stderr, "move shop/web to n1: cannot be looked at: ") {
		t.Errorf("exit %d, printed %q and %q", ran.code, ran.stdout, ran.stderr)
	}
}

// Who waits is told what is waited for, and goes on looking when nobody answers for a moment.
func TestDrainWaitsUntilNothingIsLeft(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, &stages{documents: []string{drainBegun, drainBegun, drainStale, drainFlows, drainOver}, fails: 1})
	ran := w.say(&heard{}, server, "drain", "node", "n1", "--wait")
	if ran.code != 0 || ran.stdout != "drained:  node/n1\nflows:    12 open by way of n1, 0 busy in the last 30 s\n" {
		t.Fatalf("exit %d, printed %q", ran.code, ran.stdout)
	}
	for _, want := range []string{"nobody leads at present", "drain node n1: 1 next hops left: 203.0.113.10/32 via n1",
		"drain node n1: flows: 20 open by way of n1, 3 busy in the last 30 s"} {
		if n := strings.Count(ran.stderr, want); n != 1 {
			t.Errorf("%q is told %d times:\n%s", want, n, ran.stderr)
		}
	}
}

func TestDrainGivesUpWaitingInTime(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, &stages{documents: []string{drainBegun}})
	w.givesUp(server, "by m2", "drain", "node", "n1")
}

// givesUp runs a command line that waits until its time is over, and fails unless it was told meanwhile what for. On a busy
// machine it may not come to look once: then it gets more time.
func (w *world) givesUp(server, told string, args ...string) {
	w.t.Helper()
	for timeout := 700 * time.Millisecond; ; timeout *= 4 {
		ran := w.say(&heard{}, server, append(args, "--wait", "--timeout", timeout.String())...)
		looked := strings.Contains(ran.stderr, told)
		if ran.code != exitFailed || ran.stdout != "" || !strings.Contains(ran.stderr, "not done within "+timeout.String()) || !looked && timeout > 20*time.Second {
			w.t.Fatalf("exit %d, printed %q, told %q", ran.code, ran.stdout, ran.stderr)
		}
		if looked {
			return
		}
	}
}

// Flows are waited for only so long, and not at all where nobody can count them: what is left is shown.
func TestDrainWaitsForFlowsOnlySoLong(t *testing.T) {
	for name, c := range map[string]struct {
		document, want string
		args           []string
	}{
		"over":      {drainFlows, "flows:    20 open by way of n1, 3 busy in the last 30 s\n", []string{"--quiet-within", "700ms"}},
		"stale":     {drainStale, "flows:    20 open by way of n1, 0 busy in the last 30 s\n", []string{"--quiet-within", "700ms"}},
		"uncounted": {drainBlind, "flows:    n1 could not count them: no connection tracking\n", nil},
		"not asked": {drainFlows, "flows:    20 open by way of n1, 3 busy in the last 30 s\n", []string{"--quiet-within", "0"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			server := w.serve(&fakeRaft{}, &stages{documents: []string{c.document}})
			ran := w.say(&heard{}, server, append([]string{"drain", "node", "n1", "--wait"}, c.args...)...)
			if ran.code != 0 || ran.stdout != "drained:  node/n1\n"+c.want {
				t.Fatalf("exit %d, printed %q, told %q", ran.code, ran.stdout, ran.stderr)
			}
		})
	}
}

// What a member still does is told without a next hop.
func TestDrainOfAMemberTellsWhatItDoes(t *testing.T) {
	w := newWorld(t)
	const announcing = `{"name":"member/m1","of":"member","subject":"m1","since":{"epoch":1,"index":90},"done":false,"left":[` +
		`{"prefix":"","node":"","address":"","state":"announcing","waitsFor":["m2"],"why":"nobody else does"}],"flows":[]}`
	server := w.serve(&fakeRaft{}, &stages{documents: []string{announcing}})
	if got := w.say(&heard{}, server, "drain", "member", "m1").mustPrint(t); !strings.Contains(got, "left:      announcing still: nobody else does") {
		t.Errorf("printed %q", got)
	}
	w.givesUp(server, "drain member m1: left: announcing still", "drain", "member", "m1")
	w.say(&heard{}, server, "drain", "member", "m1", "--quiet-within", "1s").mustFail(t, exitUsage, "")
}
