// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"fairlead.io/fairlead/fsm/world"
)

// fakeClock stands still until it is moved.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *fakeClock { return &fakeClock{now: time.Unix(1_000_000, 0)} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) After(time.Duration) <-chan time.Time { return nil }

func (c *fakeClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// disk is a folder that can be made to fail.
type disk struct {
	files fstest.MapFS
	// broken maps names to the error that opening or listing them gives; "." is the folder itself.
	broken map[string]error
	// vanishing is a file that is deleted as soon as somebody looks at it.
	vanishing string
}

func newDisk() *disk { return &disk{files: fstest.MapFS{}, broken: map[string]error{}} }

func (d *disk) Open(name string) (fs.File, error) {
	if err := d.broken[name]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if name == d.vanishing {
		delete(d.files, name)
	}
	return d.files.Open(name)
}

// bench is a source over a disk, with a clock that tests move.
type bench struct {
	disk   *disk
	clock  *fakeClock
	source *Source
	log    strings.Builder
	writes int64
}

func newBench() *bench {
	b := &bench{disk: newDisk(), clock: newClock()}
	b.source = New(Options{FS: b.disk, Dir: "manifests", Clock: b.clock, Logger: slog.New(slog.NewTextHandler(&b.log, nil))})
	return b
}

// write puts a file down; every write has a time of its own.
func (b *bench) write(name, text string) {
	b.writes++
	b.disk.files[name] = &fstest.MapFile{Data: []byte(text), ModTime: time.Unix(2_000_000, b.writes)}
}

// pass lets time go by while the source reads as often as it asks for.
func (b *bench) pass(d time.Duration) {
	end := b.clock.Now().Add(d)
	for {
		wait := b.source.scan()
		if left := end.Sub(b.clock.Now()); wait >= left {
			b.clock.move(left)
			return
		}
		b.clock.move(wait)
	}
}

// service is a manifest of a Service.
func service(name string, lines ...string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata:\n  name: %s\nspec:\n  type: LoadBalancer\n  ports: [{port: 80}]\n%s", name, indent(lines))
}

func indent(lines []string) string {
	var out strings.Builder
	for _, l := range lines {
		out.WriteString("  " + l + "\n")
	}
	return out.String()
}

func serviceNames(w world.World) string {
	var names []string
	for _, s := range w.Services {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func wantServices(t *testing.T, b *bench, want string) {
	t.Helper()
	w := b.source.World()
	if got := serviceNames(w); got != want {
		t.Fatalf("services %q, want %q; problems %v", got, want, w.Problems)
	}
}

func wantProblem(t *testing.T, b *bench, want string) {
	t.Helper()
	w := b.source.World()
	for _, p := range w.Problems {
		if strings.Contains(p.String(), want) {
			return
		}
	}
	t.Fatalf("no problem says %q:\n%v", want, w.Problems)
}
