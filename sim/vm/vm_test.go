// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
)

// guest is the program of testdata/guest, compiled from code.
var (
	guest *Module
	code  []byte
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := build()
	defer os.RemoveAll(dir)
	if err == nil {
		code, err = os.ReadFile(filepath.Join(dir, "guest.wasm"))
	}
	if err == nil {
		guest, err = Load(context.Background(), code, filepath.Join(dir, "cache"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer guest.Close(context.Background())
	return m.Run()
}

// build builds the guest in a folder that is to be removed.
func build() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "guest"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "guest.wasm"), "./testdata/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("build guest: %w\n%s", err, out)
	}
	return dir, nil
}

// seen is what a process let the world see.
type seen struct {
	process *Process
	lines   []string
	facts   []string
	ends    int
	err     error
}

// start starts the guest. Its lines are kept with the time at which they were written.
func start(w *engine.World, s Spec, args ...string) *seen {
	o := &seen{}
	s.World, s.Module, s.Args = w, guest, append([]string{"guest"}, args...)
	if s.Name == "" {
		s.Name = "p"
	}
	s.Line = func(stream int, line string) { o.lines = append(o.lines, line) }
	s.Observe = func(kind uint32, data []byte) { o.facts = append(o.facts, fmt.Sprintf("%d %s", kind, data)) }
	s.Ended = func(err error) { o.ends++; o.err = err }
	o.process = Start(s)
	return o
}

func TestProcessSeesArgumentsAndIsSeen(t *testing.T) {
	w := engine.New(1)
	o := start(w, Spec{Env: []string{"COLOUR=blue"}}, "hello", "3")
	if err := w.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if want := []string{"args [guest hello 3] env blue", "no newline"}; !slices.Equal(o.lines, want) {
		t.Errorf("lines %q, want %q", o.lines, want)
	}
	if want := []string{"7 fact"}; !slices.Equal(o.facts, want) {
		t.Errorf("facts %q, want %q", o.facts, want)
	}
	if want := (ExitError{3}); o.ends != 1 || !errors.Is(o.err, want) {
		t.Errorf("ended %d times with %v, want once with %v", o.ends, o.err, want)
	}
}

func TestPackageOSWorksOnDisk(t *testing.T) {
	w := engine.New(1)
	o := start(w, Spec{}, "files")
	if err := w.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/files.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(o.lines, "\n") + "\n"; got != string(want) {
		t.Errorf("guest saw:\n%s\nwant:\n%s", got, want)
	}
	if o.ends != 1 || o.err != nil {
		t.Errorf("ended %d times with %v", o.ends, o.err)
	}
}

func TestSleepTakesItsTime(t *testing.T) {
	w := engine.New(1)
	o := start(w, Spec{}, "sleep", "100", "3")
	if err := w.Run(time.Second); err != nil {
		t.Fatal(err)
	}
	if want := []string{"100ms", "200ms", "300ms"}; !slices.Equal(o.lines, want) {
		t.Errorf("woke after %q, want %q", o.lines, want)
	}
}
