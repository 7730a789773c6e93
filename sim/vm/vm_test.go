// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fairlead.io/fairlead/sim/engine"
	"fairlead.io/fairlead/sim/native"
	"fairlead.io/fairlead/sim/program"
)

// guest is the program of testdata/guest for the engine that is being tested, compiled from code.
var (
	guest *Module
	code  []byte
)

// engineVariable has one engine tested alone.
const engineVariable = "FAIRLEAD_TEST_ENGINE"

// TestMain runs all tests once for each engine.
func TestMain(m *testing.M) {
	flag.Parse()
	failed := 0
	for _, e := range []program.Engine{program.WebAssembly, program.Native} {
		if only := os.Getenv(engineVariable); only != "" && only != string(e) {
			continue
		}
		failed = max(failed, testEngine(m, e))
	}
	os.Exit(failed)
}

func testEngine(m *testing.M, e program.Engine) int {
	fmt.Println("engine", e)
	dir, err := os.MkdirTemp("", "guest")
	defer os.RemoveAll(dir)
	if err == nil {
		code, err = program.Build(context.Background(), "../..", dir, "./sim/vm/testdata/guest", program.Options{Engine: e})
	}
	if errors.Is(err, native.ErrUnknownGo) {
		fmt.Println("not tested:", err)
		return 0
	}
	if err == nil {
		guest, err = Load(context.Background(), code, filepath.Join(dir, "cache"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer guest.Close(context.Background())
	if err := os.Setenv(engineVariable, string(e)); err != nil { // for tests that run themselves
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.Unsetenv(engineVariable) }()
	return m.Run()
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
	got := strings.Join(o.lines, "\n") + "\n"
	if guest.native != nil {
		got = strings.NewReplacer("bad file descriptor", "Bad file number", "is a directory", "Is a directory").Replace(got)
	}
	if got != string(want) {
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
