// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"fairlead.io/fairlead/internal/lifeline"
)

// Environment of tests. testkit and e2e/lab read it.
const (
	fastVariable     = "FAIRLEAD_TEST_FAST" // 1: testkit.NotFast skips
	drawsVariable    = "FAIRLEAD_DRAWS"     // folder for digests of what properties drew
	binariesVariable = "FAIRLEAD_BINARIES"  // folder with the programs that ship, built once
)

const (
	allTests  = ""
	fastTests = "fast"
)

// executor runs tests and hands their events to the report.
type executor struct {
	options
	report *report
	work   string
	draws  string
}

// atOnce is how many unit packages are tested at once. Half of their time they wait for timers, disks and each other; beside end-to-end
// tests, which hold processes to times, there are fewer.
func (e *executor) atOnce() int {
	if e.unitsAlone() {
		return 2 * runtime.NumCPU()
	}
	return runtime.NumCPU()
}

// limit is how long a package may take: what hangs shows when that has passed. Alone, the slowest one takes half a minute; beside end-to-end
// tests, those that play worlds have taken twenty minutes on a busy machine.
func (e *executor) limit() string {
	if e.unitsAlone() {
		return "10m"
	}
	return "45m"
}

// unitsAlone tells whether there are no end-to-end tests beside unit packages.
func (e *executor) unitsAlone() bool { return e.set == "fast" || e.set == "race" }

// goTest runs unit packages: all their tests, those that are fast, or those that a pattern names.
func (e *executor) goTest(ctx context.Context, packages []string, which string) error {
	if len(packages) == 0 {
		return nil
	}
	args := []string{"test", "-json", "-timeout", e.limit(), "-p", fmt.Sprint(e.atOnce())}
	env := os.Environ()
	if e.set == "race" { // a process that ends waits a second for what its last goroutines may do, a minute and a half in all
		env = append(env, "GORACE=atexit_sleep_ms=50")
	}
	switch which {
	case fastTests:
		env = append(env, fastVariable+"=1")
	case allTests:
	default:
		args = append(args, "-run", which)
	}
	return e.stream(ctx, "go", append(e.common(args), packages...), env)
}

// worlds runs packages that keep all cores busy, one after the other.
func (e *executor) worlds(ctx context.Context, packages []string) error {
	if len(packages) == 0 {
		return nil
	}
	return e.stream(ctx, "go", append(e.common([]string{"test", "-json", "-timeout", "30m", "-p", "1"}), packages...), os.Environ())
}

// common adds what all calls of go test have. Where no earlier result counts, `make lint` has vetted everything before.
func (e *executor) common(args []string) []string {
	if e.fresh {
		args = append(args, "-count=1", "-vet=off")
	}
	return append(args, e.options.goTest...)
}

// stream runs a program that prints events. Beside end-to-end tests it has a lower priority: those hold processes to times, these only
// compute.
func (e *executor) stream(ctx context.Context, program string, args, env []string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	if !e.unitsAlone() {
		cmd = exec.CommandContext(ctx, "nice", append([]string{"-n", "5", program}, args...)...)
	}
	if e.fresh { // a folder with another name would make each run a new one
		env = append(env, drawsVariable+"="+e.draws)
	}
	cmd.Env, cmd.Stderr = env, e.verbose
	lifeline.EndTogether(cmd)
	return e.events(ctx, cmd, "")
}

// events hands the events of a program to the report until it ends. That it exits with 1 is no error here: the events say what failed.
// test, if not empty, is the only one that the program runs.
func (e *executor) events(ctx context.Context, cmd *exec.Cmd, test string) error {
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = e.report.read(pipe, test)
	_, _ = io.Copy(io.Discard, pipe)
	if exit := cmd.Wait(); err == nil && exit != nil && cmd.ProcessState.ExitCode() != 1 {
		err = fmt.Errorf("%s: %w", filepath.Base(cmd.Args[0]), exit)
	}
	return cmp.Or(ctx.Err(), err)
}

// single is a test that runs in a process of its own.
type single struct {
	pkg, binary, folder, name string
	budget                    time.Duration // 0: none is known
}

// processes builds the packages and what ships, and runs each test in a process of its own, some at once and the dearest first.
func (e *executor) processes(ctx context.Context, packages []string, atOnce int) error {
	if len(packages) == 0 {
		return nil
	}
	binaries := filepath.Join(e.work, "bin")
	if err := e.build(ctx, "build", "-trimpath", "-o", binaries+"/", "./cmd/fairlead", "./cmd/fairlead-driver-haproxy"); err != nil {
		return err
	}
	// The driver's tests run it as other users, too.
	for _, dir := range []string{e.work, binaries} {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	env := append(os.Environ(), binariesVariable+"="+binaries, drawsVariable+"="+e.draws)
	var tests []single
	for _, pkg := range packages {
		of, err := e.singles(ctx, pkg, env)
		if err != nil {
			e.report.broken(pkg, err)
			continue
		}
		tests = append(tests, of...)
	}
	slices.SortStableFunc(tests, func(a, b single) int { return cmp.Compare(b.budget, a.budget) })
	queue := make(chan single, len(tests))
	for _, t := range tests {
		queue <- t
	}
	close(queue)
	var lanes sync.WaitGroup
	for range atOnce {
		lanes.Go(func() {
			for t := range queue {
				if ctx.Err() == nil {
					e.single(ctx, t, env)
				}
			}
		})
	}
	lanes.Wait()
	return ctx.Err()
}

func (e *executor) build(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// singles builds a package's tests and lists them.
func (e *executor) singles(ctx context.Context, pkg string, env []string) ([]single, error) {
	folder := strings.TrimPrefix(pkg, module+"/")
	binary := filepath.Join(e.work, strings.ReplaceAll(folder, "/", "-")+".test")
	if err := e.build(ctx, "test", "-c", "-o", binary, pkg); err != nil {
		return nil, err
	}
	if _, err := os.Stat(binary); err != nil {
		return nil, nil // without tests on this platform
	}
	list := exec.CommandContext(ctx, binary, "-test.list", "^Test")
	list.Dir, list.Env = folder, env
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list tests: %w", err)
	}
	var tests []single
	for name := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(name, "Test") {
			tests = append(tests, single{pkg, binary, folder, name, budgets()[folder+" "+name]})
		}
	}
	return tests, nil
}

// single runs one test.
func (e *executor) single(ctx context.Context, t single, env []string) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-t", "-p", t.pkg, t.binary,
		"-test.v=test2json", "-test.paniconexit0", "-test.timeout=15m", "-test.run=^"+quote(t.name)+"$")
	cmd.Dir, cmd.Env, cmd.Stderr = t.folder, env, e.verbose
	lifeline.EndTogether(cmd)
	began := time.Now()
	if err := e.events(ctx, cmd, t.name); err != nil && ctx.Err() == nil {
		e.report.broken(t.pkg, fmt.Errorf("%s: %w", t.name, err))
	}
	e.report.took(t, time.Since(began))
}
