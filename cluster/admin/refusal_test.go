// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"pgregory.net/rapid"

	"fairlead.io/fairlead/internal/testkit"
)

// A refusal means the same on the other side of a connection, however deep it was wrapped.
func TestPropertyRefusalsCrossConnectionsWhole(t *testing.T) {
	t.Parallel()
	codes := []Code{NotLeader, NoQuorum, WouldLoseQuorum, UnknownServer, NotReady, Removed, RolledBack, BootstrapMismatch, Busy, Unreachable, UnknownOutcome, Stopped, Invalid, Forbidden}
	text := rapid.StringMatching(`[a-z0-9 ]{1,20}`)
	testkit.Check(t, func(t *rapid.T) {
		sent := &Refusal{
			Code: rapid.SampledFrom(codes).Draw(t, "code"), What: text.Draw(t, "what"), Why: text.Draw(t, "why"),
			Remedy: text.Draw(t, "remedy"), ForceOverrides: rapid.Bool().Draw(t, "force"), Leader: text.Draw(t, "leader"),
		}
		var err error = sent
		for range rapid.IntRange(0, 3).Draw(t, "wraps") {
			err = fmt.Errorf("on the way: %w", err)
		}
		wire := toConnect(err)
		if connect.CodeOf(wire) == connect.CodeOf(errors.New("x")) && sent.Code != UnknownOutcome {
			t.Fatalf("%s has no code of its own on the wire", sent.Code)
		}
		if !strings.Contains(wire.Error(), sent.Error()) {
			t.Fatalf("message %q lacks %q", wire, sent)
		}
		got := fromConnect(wire)
		var received *Refusal
		if !errors.As(got, &received) || *received != *sent || !errors.Is(got, sent.Code) {
			t.Fatalf("sent %+v, received %+v", sent, got)
		}
	})
}

func TestCodesAloneCrossConnections(t *testing.T) {
	t.Parallel()
	if got := fromConnect(toConnect(fmt.Errorf("commit: %w", UnknownOutcome))); !errors.Is(got, UnknownOutcome) {
		t.Fatalf("received %v", got)
	}
	if toConnect(nil) != nil || fromConnect(nil) != nil {
		t.Fatal("no error became one")
	}
}
