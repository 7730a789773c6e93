// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
)

const (
	moveBegun = `{"name":"shop/web","node":"n2","since":{"epoch":1,"index":90},"time":"2026-11-22T15:00:00Z","by":"operator","reason":"","done":false,"left":[` +
		`{"prefix":"203.0.113.10/32","node":"n1","address":"192.0.2.1","state":"withdrawing","waitsFor":["m2"],"why":"not withdrawn yet, or a switch may hold it still, by m2"},` +
		`{"prefix":"203.0.113.11/32","node":"","address":"","state":"lease","waitsFor":[],"why":"nobody answers for it at layer 2 yet"}]}`
	moveOver = `{"name":"shop/web","node":"n2","since":{"epoch":1,"index":90},"time":"2026-11-22T15:00:00Z","by":"operator","reason":"","done":true,"left":[]}`
)

func TestMoveIsSaidAndShown(t *testing.T) {
	w, h := newWorld(t), &heard{}
	server := w.serve(&fakeRaft{}, &stages{documents: []string{moveBegun}})
	got := w.say(h, server, "move", "shop/web", "n2", "--reason", "line card").mustPrint(t)
	if want := "moving:  shop/web\nto:      n2\nleft:    203.0.113.10/32 via n1 (withdrawing: not withdrawn yet, or a switch may hold it still, by m2), " +
		"203.0.113.11/32 (lease: nobody answers for it at layer 2 yet)\n"; got != want {
		t.Errorf("printed %q", got)
	}
	got = w.say(h, server, "move", "shop/web", "--undo", "-o", "json").mustPrint(t)
	if want := "{\n  \"service\": \"shop/web\",\n  \"node\": \"\",\n  \"undone\": true,\n  \"done\": false,\n  \"left\": []\n}\n"; got != want {
		t.Errorf("printed %q", got)
	}
	if got := strings.Join(h.said, "; "); got != `move shop/web to "n2" undo=false: line card; move shop/web to "" undo=true: ` {
		t.Errorf("heard %q", got)
	}
	w.say(&heard{refuse: errors.New("node n9: not-found")}, server, "move", "shop/web", "n9").mustFail(t, exitFailed, "move shop/web to n9", "not-found")
	for _, args := range [][]string{{"move"}, {"move", "shop/web"}, {"move", "shop/web", "n1", "--undo"}, {"move", "shop/web", "--undo", "--wait"},
		{"move", "shop/web", "n1", "--timeout", "0s"}, {"move", "shop/web", "n1", "n2"}} {
		w.say(h, server, args...).mustFail(t, exitUsage, "")
	}
}

// Who waits is told what is waited for, goes on looking when nobody answers for a moment, and gives up in time.
func TestMoveIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, &stages{documents: []string{moveBegun, moveBegun, moveOver}, fails: 1})
	ran := w.say(&heard{}, server, "move", "shop/web", "n2", "--wait")
	if ran.code != 0 || ran.stdout != "moved:  shop/web\nto:     n2\n" {
		t.Fatalf("exit %d, printed %q", ran.code, ran.stdout)
	}
	for _, want := range []string{"nobody leads at present", "move shop/web to n2: left: 203.0.113.10/32 via n1"} {
		if n := strings.Count(ran.stderr, want); n != 1 {
			t.Errorf("%q is told %d times:\n%s", want, n, ran.stderr)
		}
	}
	server = w.serve(&fakeRaft{}, &stages{documents: []string{moveBegun}})
	ran = w.say(&heard{}, server, "move", "shop/web", "n2", "--wait", "--timeout", "700ms")
	if ran.code != exitFailed || ran.stdout != "" || !strings.Contains(ran.stderr, "not done within 700ms") || !strings.Contains(ran.stderr, "--undo") {
		t.Fatalf("exit %d, printed %q, told %q", ran.code, ran.stdout, ran.stderr)
	}
}
