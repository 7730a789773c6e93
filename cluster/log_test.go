// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// A dead peer makes the library complain a dozen times a second.
func TestLibrarysComplaintsAreNotRepeated(t *testing.T) {
	var out bytes.Buffer
	l := newRaftLog(slog.New(slog.NewTextHandler(&out, nil)))
	for range 100 {
		l.Error("failed to heartbeat to", "peer", "b:7444")
		l.With("extra", 1).Named("sub").Error("failed to heartbeat to", "peer", "b:7444")
	}
	l.Warn("something else")
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Fatalf("%d lines, want 2:\n%s", n, out.String())
	}
	if !strings.Contains(out.String(), "peer=b:7444") {
		t.Fatalf("the peer is missing:\n%s", out.String())
	}
}

func TestLibrarysDetailsAreShownOnlyWhenAsked(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelInfo: 0, slog.LevelDebug: 3} {
		var out bytes.Buffer
		l := newRaftLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})))
		l.Info("entering follower state")
		l.Debug("accepted connection")
		l.Log(hclog.Info, "initial configuration")
		if n := strings.Count(out.String(), "\n"); n != want {
			t.Errorf("at %v: %d lines, want %d:\n%s", level, n, want, out.String())
		}
	}
}
