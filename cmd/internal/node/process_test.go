// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent/disk"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

func TestAgentIsReadyOnceItFollowsAMemberAndDidAsItWasTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config(t)
	w.route(t, "192.0.2.1")
	p := start(t, c)
	testkit.Until(t, "it is ready", func() bool { code, _ := ask(t, c, "/readyz"); return code == http.StatusOK })
	s := p.Status()
	if s.Member == "" || s.Applied.IsZero() || s.Applied != s.Told {
		t.Errorf("ready at %+v", s)
	}
	if code, body := ask(t, c, "/metrics"); code != http.StatusOK || !strings.Contains(body, "fairlead_agent_connected 1") ||
		!strings.Contains(body, "fairlead_certificate_not_after_seconds") {
		t.Errorf("metrics: %d\n%s", code, body)
	}
	w.api.Stop()
	testkit.Until(t, "it is not ready without a member", func() bool {
		code, body := ask(t, c, "/readyz")
		return code == http.StatusServiceUnavailable && strings.Contains(body, "no member serves this node; it keeps what it has")
	})
	if code, body := ask(t, c, "/healthz"); code != http.StatusOK {
		t.Errorf("without a member a restart does not help, but /healthz says %d: %s", code, body)
	}
}

// K46: a node that the autoscaler is about to delete is not healthy, but alive, until the mark is taken back; both pages tell
// when something was carried out last.
// Rule: K46.
func TestNodeThatIsAboutToBeDeletedIsAliveAndNotHealthy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config(t)
	start(t, c)
	pages := func() (alive, healthy int, about string) {
		alive, a := ask(t, c, "/livez")
		healthy, b := ask(t, c, "/healthz")
		return alive, healthy, a + b
	}
	testkit.Until(t, "it is healthy", func() bool {
		alive, healthy, about := pages()
		return alive == http.StatusOK && healthy == http.StatusOK && strings.Count(about, "\nlast sync: "+time.Now().UTC().Format("2006-01-")) == 2
	})
	w.group.Apply(t, &fsm.PutNode{ID: "n1", Leaving: true})
	testkit.Until(t, "it is alive and not healthy", func() bool {
		alive, healthy, about := pages()
		return alive == http.StatusOK && healthy == http.StatusServiceUnavailable && strings.Contains(about, "taint ToBeDeletedByClusterAutoscaler") &&
			strings.Count(about, "last sync: ") == 2
	})
	w.group.Apply(t, &fsm.PutNode{ID: "n1"})
	testkit.Until(t, "it is healthy again", func() bool { _, healthy, _ := pages(); return healthy == http.StatusOK })
}

// SIGTERM ends the context of Run; what the node was told stays for the next agent.
func TestStoppedAgentEndsWithoutErrorAndKeepsItsState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config(t)
	w.route(t, "192.0.2.1")
	p := start(t, c)
	testkit.Until(t, "something is carried out", func() bool { return !p.Status().Applied.IsZero() })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.StateDir, "desired.state")); err != nil {
		t.Error(err)
	}
	w.api.Stop()
	again := start(t, c)
	testkit.Until(t, "the last state is carried out without a member", func() bool { return !again.Status().Applied.IsZero() })
}

func TestSecondAgentAndCleanupAreKeptOutWhileOneRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config(t)
	start(t, c)
	for name, do := range map[string]func() error{
		"second agent": func() error { _, err := node.Open(c, machine.Agent(), quiet); return err },
		"cleanup":      func() error { return node.Cleanup(t.Context(), c, machine.Agent(), quiet) },
	} {
		if err := do(); !errors.Is(err, disk.ErrLocked) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCleanupLeavesNoFileAndMayBeRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config(t)
	p := start(t, c)
	testkit.Until(t, "something is carried out", func() bool { return !p.Status().Applied.IsZero() })
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(c.StateDir, "somebody-elses")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := node.Cleanup(t.Context(), c, machine.Agent(), quiet); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(c.StateDir)
	if err != nil || len(left) != 1 || left[0].Name() != "somebody-elses" {
		t.Fatalf("left %v, %v", left, err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		forked()
		if err := node.Cleanup(t.Context(), c, machine.Agent(), quiet); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(c.StateDir); !os.IsNotExist(err) {
			t.Fatalf("the folder is there: %v", err)
		}
	}
}

func TestAgentWithTheCertificateOfAnotherNodeSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config(t)
	c.Node = "n2"
	_, err := node.Open(c, machine.Agent(), quiet)
	if err == nil || !strings.Contains(err.Error(), "the certificate is agent/n1's, this is agent/n2; issue one with") {
		t.Fatalf("got %v", err)
	}
	if l, err := disk.Lock(c.StateDir); err != nil {
		t.Errorf("something was left open: %v", err)
	} else if err := l.Close(); err != nil {
		t.Error(err)
	}
}
