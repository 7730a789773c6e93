// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"fairlead.io/fairlead/cluster/admin"
)

// heard is a group that keeps what operators said to it.
type heard struct {
	said   []string
	refuse error
}

func (h *heard) ReleaseHold(_ context.Context, id, reason string) error {
	h.said = append(h.said, "release "+id+": "+reason)
	return h.refuse
}

func (h *heard) AcceptRewind(_ context.Context, source, reason string) error {
	h.said = append(h.said, "rewind "+source+": "+reason)
	return h.refuse
}

func (h *heard) Drain(_ context.Context, of, name string, undo bool, reason string) error {
	h.said = append(h.said, fmt.Sprintf("drain %s %s undo=%t: %s", of, name, undo, reason))
	return h.refuse
}

func (h *heard) Move(_ context.Context, service, node string, undo bool, reason string) error {
	h.said = append(h.said, fmt.Sprintf("move %s to %q undo=%t: %s", service, node, undo, reason))
	return h.refuse
}

// say runs a command line whose word goes to h; lists come from the server.
func (w *world) say(h *heard, server string, args ...string) ran {
	w.t.Helper()
	var stdout, stderr bytes.Buffer
	c := &cli{out: &stdout, err: &stderr, getenv: os.Getenv}
	over := func(*admin.Client) word { return h }
	root := newRoot(c, newHolds(c, newHoldsRelease(c, over)), newAcceptRewind(c, over), newDrain(c, over), newMove(c, over))
	args = append([]string{"--server", server, "--ca", w.files.CA, "--cert", w.files.Cert, "--key", w.files.Key}, args...)
	return ran{execute(w.t.Context(), root, args, &stderr), stdout.String(), stderr.String()}
}

func TestOperatorsWordReachesTheGroup(t *testing.T) {
	w := newWorld(t)
	server := w.serve(&fakeRaft{}, &fakeRecord{})
	say := func(h *heard, args ...string) ran { return w.say(h, server, args...) }
	h := &heard{}
	if got := say(h, "holds", "release", "h1", "--reason", "meant").mustPrint(t); got != "released:  h1\n" {
		t.Errorf("printed %q", got)
	}
	if got := say(h, "accept-rewind", "kubernetes", "-o", "json").mustPrint(t); got != "{\n  \"source\": \"kubernetes\"\n}\n" {
		t.Errorf("printed %q", got)
	}
	if got := strings.Join(h.said, "; "); got != "release h1: meant; rewind kubernetes: " {
		t.Errorf("heard %q", got)
	}
	refusing := &heard{refuse: errors.New("hold h9: there is none")}
	say(refusing, "holds", "release", "h9").mustFail(t, exitFailed, "holds release h9", "there is none")
	say(h, "holds", "release").mustFail(t, exitUsage, "want ID")
	say(h, "accept-rewind").mustFail(t, exitUsage, "want SOURCE")
}

func TestHoldsListShowsWhatIsHeld(t *testing.T) {
	w := newWorld(t)
	record := &fakeRecord{names: []string{"h1"}, documents: map[string]string{
		"h1": `{"name":"h1","of":"services","subjects":["a/a","a/b"],"why":"more than half","since":{"epoch":1,"index":90},"released":false}`,
	}}
	golden(t, "holds-list-table", w.say(&heard{}, w.serve(&fakeRaft{}, record), "holds", "list").mustPrint(t))
}
