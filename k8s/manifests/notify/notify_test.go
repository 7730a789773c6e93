// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fairlead.io/fairlead/internal/testkit"
	"fairlead.io/fairlead/k8s/manifests"
	"fairlead.io/fairlead/k8s/manifests/notify"
)

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func service(name string) []byte {
	return fmt.Appendf(nil, "apiVersion: v1\nkind: Service\nmetadata:\n  name: %s\nspec:\n  ports: [{port: 80}]\n", name)
}

// With a poll that never comes within the test, only file events can tell the source of changes: in the folder, in a
// subfolder made later, and through the links that a mounted config map consists of.
func TestFileEventsReachTheSource(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(t.Context())
	edges, err := notify.Watch(ctx, dir, log)
	if err != nil {
		t.Fatal(err)
	}
	source := manifests.New(manifests.Options{FS: os.DirFS(dir), Dir: dir, Clock: systemClock{}, Logger: log, Poll: time.Hour, Notify: edges})
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()

	expect := func(want int) {
		t.Helper()
		deadline := time.After(testkit.Patience)
		for {
			w := source.World()
			if len(w.Services) == want {
				return
			}
			select {
			case <-source.Changed():
			case <-deadline:
				t.Fatalf("%d services, want %d; problems %v", len(w.Services), want, w.Problems)
			}
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(dir, "a.yaml"), service("a"), 0o644))
	expect(1)
	must(os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "sub", "b.yaml"), service("b"), 0o644))
	expect(2)
	must(os.Mkdir(filepath.Join(dir, "..data"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "..data", "c.yaml"), service("c"), 0o644))
	must(os.Symlink(filepath.Join("..data", "c.yaml"), filepath.Join(dir, "c.yaml")))
	expect(3)
	must(os.Remove(filepath.Join(dir, "a.yaml")))
	expect(2)
	stop()
	if err := <-ended; err != nil {
		t.Fatalf("Run ended with %v", err)
	}
}

func TestWatchOfAMissingFolderSaysSo(t *testing.T) {
	if _, err := notify.Watch(t.Context(), filepath.Join(t.TempDir(), "none"), slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("no error")
	}
}
