// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/internal/private"
	"fairlead.io/fairlead/internal/testkit"
)

// open lists what in a folder is open to other users of the machine.
func open(t *testing.T, folder string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && private.Wide(d) {
			paths = append(paths, path)
		}
		if errors.Is(err, fs.ErrNotExist) { // a snapshot that was begun
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// widen gives everybody every right on a folder and what is in it, as former releases could.
func widen(t *testing.T, folder string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chmod(path, 0o777))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// told is a log that is read while it is written.
type told struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *told) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *told) has(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), words)
}

// The data folder has the record, passwords of switches and keys. The umask of whoever starts a member or an agent opens
// none of that to others, and what a former release left open is closed.
func TestNobodyElseReadsWhatMembersAndAgentsKeep(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)

	c := alone(t)
	if err := os.Mkdir(c.DataDir, 0o777); err != nil { // as a kubelet makes it
		t.Fatal(err)
	}
	for round := range 2 {
		log := &told{}
		stop := runMember(t, c, slog.New(slog.NewTextHandler(log, nil)))
		testkit.Until(t, "there is a snapshot", func() bool {
			found, err := filepath.Glob(filepath.Join(c.DataDir, "snapshots", "*-*-*", "state.bin"))
			return err == nil && len(found) > 0
		})
		stop()
		if wide := open(t, c.DataDir); len(wide) > 0 {
			t.Errorf("round %d: the member left open %q", round, wide)
		}
		if !log.has("data folder was open to other users") {
			t.Errorf("round %d: the member does not say that it narrowed its folder", round)
		}
		widen(t, c.DataDir)
	}

	w := newWorld(t)
	a := w.config(t)
	w.route(t, "192.0.2.1")
	for round := range 2 {
		log := &told{}
		p, err := node.Open(a, machine.Agent(), slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- p.Run(ctx) }()
		testkit.Until(t, "something is carried out", func() bool { return !p.Status().Applied.IsZero() })
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if wide := open(t, a.StateDir); len(wide) > 0 {
			t.Errorf("round %d: the agent left open %q", round, wide)
		}
		if said := log.has("state folder was open to other users"); said != (round > 0) {
			t.Errorf("round %d: the agent says that it narrowed its folder: %v", round, said)
		}
		widen(t, a.StateDir)
	}
}

// alone is the configuration of a group of one, which takes snapshots all the time.
func alone(t *testing.T) config.Controller {
	ca := pkitest.New(t)
	files := ca.Issue(t, pki.Request{Role: pki.Member, Name: "m1"})
	api, raft := freeAddress(t), freeAddress(t)
	c := config.Controller{
		Name: "m1", DataDir: filepath.Join(t.TempDir(), "m1"), FloorDir: t.TempDir(), Listen: config.Listen{API: api, Raft: raft}, BootstrapToken: "t", Log: "info",
		TLS:     config.MemberTLS{TLS: config.TLS(files), CAKey: ca.Key()},
		Members: []config.Member{{Name: "m1", API: api, Raft: raft}}, Sources: config.Sources{Manifests: []string{t.TempDir()}},
		Raft: config.Raft{SnapshotThreshold: 1, SnapshotInterval: 50 * time.Millisecond},
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

// runMember runs a member until stop is called.
func runMember(t *testing.T, c config.Controller, log *slog.Logger) (stop func()) {
	t.Helper()
	var l machine.Listeners
	for listener, address := range map[*net.Listener]string{&l.API: c.Listen.API, &l.Raft: c.Listen.Raft} {
		var err error
		if *listener, err = net.Listen("tcp", address); err != nil {
			t.Fatal(err)
		}
	}
	m, err := member.Open(c, "test", machine.Member(l), log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("member: %v", err)
		}
	}
}
