// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
)

// bench is the testing.TB of one benchmark: the parts that tests use also serve here. What a failure skips is the
// rest of that benchmark.
type bench struct {
	testing.TB // for what is not implemented here; nothing calls it
	name       string
	progress   io.Writer
	cleanups   []func()
	failure    error
}

// attempt runs one benchmark and undoes what it set up, newest first.
func attempt(b benchmark, progress io.Writer) (result, error) {
	t := &bench{name: b.name, progress: progress}
	var got figures
	t.guard(func() { got = b.run(t) })
	for len(t.cleanups) > 0 {
		last := t.cleanups[len(t.cleanups)-1]
		t.cleanups = t.cleanups[:len(t.cleanups)-1]
		t.guard(last)
	}
	return got.result(b.name, b.unit), t.failure
}

// guard runs f in a goroutine of its own, which Fatal may end.
func (t *bench) guard(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (t *bench) fail(text string) {
	if t.failure == nil {
		t.failure = fmt.Errorf("%s", text)
	}
}

// The methods of testing.TB that helpers of tests use.

func (t *bench) Helper()          {}
func (t *bench) Name() string     { return t.name }
func (t *bench) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *bench) Failed() bool     { return t.failure != nil }

func (t *bench) Log(args ...any) { fmt.Fprintln(t.progress, args...) }

func (t *bench) Logf(format string, args ...any) { fmt.Fprintf(t.progress, format+"\n", args...) }

func (t *bench) Error(args ...any) { t.fail(fmt.Sprint(args...)) }

func (t *bench) Errorf(format string, args ...any) { t.fail(fmt.Sprintf(format, args...)) }

func (t *bench) Fatal(args ...any) {
	t.fail(fmt.Sprint(args...))
	runtime.Goexit()
}

func (t *bench) Fatalf(format string, args ...any) {
	t.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func (t *bench) Skip(args ...any) { t.Fatal(args...) }

func (t *bench) Skipf(format string, args ...any) { t.Fatalf(format, args...) }

func (t *bench) TempDir() string {
	dir, err := os.MkdirTemp("", "fairlead-bench-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // what is left behind does no harm
	return dir
}

// progressf tells who waits what goes on.
func (t *bench) progressf(format string, args ...any) { t.Logf("  "+format, args...) }
