// SPDX-License-Identifier: Apache-2.0

// Command ci runs what decides whether a change may land, stage after stage, what tells soonest first. It stops at the first stage that
// fails: it names the stage, prints the lines that matter and the command that repeats it. At the end stands a table of the stages and
// their times. Nothing in it is drawn anew: runs of one tree test the same (docs/testing.md).
//
// It exits 1 when a stage failed and 2 when it was called wrongly. Start reading at run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"fairlead.io/fairlead/internal/lifeline"
)

// stage is one thing that is asked of a change.
type stage struct {
	name    string
	what    string
	again   string // the command that repeats it by hand
	command []string
}

// stages are in the order in which they run. left is a file by which the rest of the tests knows what the fast ones left out and the race
// detector has not seen to; where the fast ones are not asked for, they are all tests. packages, if not empty, is a part of the import paths of those that are tested.
func stages(only, packages, left string) []stage {
	tests := "ARGS=-fresh"
	if packages != "" {
		tests += " -only " + packages
	}
	race, rest := tests, tests
	if only == "" || slices.Contains(strings.Split(only, ","), "fast") {
		race += " -left " + left
		rest += " -set rest -left " + left
	}
	return []stage{
		{"build", "everything compiles, also what decides for WebAssembly", "make build test-wasi", []string{"make", "build", "test-wasi"}},
		{"lint", "gofmt, golangci-lint, who may import whom", "make lint", []string{"make", "lint"}},
		{"vuln", "known vulnerabilities that can be reached", "make vuln", []string{"make", "vuln"}},
		{"fast", "tests without root, servers and worlds", "make test-fast", []string{"make", "test-fast", tests + " -left " + left}},
		{"race", "tests under the race detector", "make race", []string{"make", "race", race}},
		{"rest", "all other tests", "make test", []string{"make", "test", rest}},
		{"sim", "simulated worlds", "make sim-ci", []string{"make", "sim-ci"}},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("ci", flag.ContinueOnError)
	flags.SetOutput(errOut)
	only := flags.String("only", "", "stages to run, with commas between them; all of them if empty")
	packages := flags.String("packages", "", "test only packages whose import path contains this")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return 2
	}
	work, err := os.MkdirTemp("", "fairlead-ci-")
	if err != nil {
		fmt.Fprintln(errOut, "ci:", err)
		return 1
	}
	defer os.RemoveAll(work)
	chosen, err := choose(stages(*only, *packages, filepath.Join(work, "left.json")), *only)
	if err != nil {
		fmt.Fprintln(errOut, "ci:", err)
		return 2
	}
	return runStages(ctx, chosen, out)
}

// choose gives the stages that have one of some names, or all.
func choose(all []stage, only string) ([]stage, error) {
	if only == "" {
		return all, nil
	}
	var names, known []string
	for _, s := range all {
		known = append(known, s.name)
	}
	for name := range strings.SplitSeq(only, ",") {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no stage is called %q; there are %s", name, strings.Join(known, ", "))
		}
		names = append(names, name)
	}
	return slices.DeleteFunc(all, func(s stage) bool { return !slices.Contains(names, s.name) }), nil
}

// outcome is how a stage ended.
type outcome struct {
	stage
	took time.Duration
	err  error
}

func runStages(ctx context.Context, all []stage, out io.Writer) int {
	var done []outcome
	for _, s := range all {
		fmt.Fprintf(out, "== %s: %s (load %s)\n", s.name, s.what, load())
		var words tail
		began := time.Now()
		err := command(ctx, s, io.MultiWriter(out, &words))
		done = append(done, outcome{s, time.Since(began), err})
		if err != nil {
			table(out, done, all)
			fmt.Fprintf(out, "\nstage %s failed: %v\n", s.name, err)
			for _, line := range words.matter() {
				fmt.Fprintln(out, "  "+line)
			}
			fmt.Fprintf(out, "again: %s\n", s.again)
			return 1
		}
	}
	table(out, done, all)
	return 0
}

func command(ctx context.Context, s stage, out io.Writer) error {
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	lifeline.EndTogether(cmd)
	cmd.WaitDelay = time.Minute
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return fmt.Errorf("%s ended with %d", strings.Join(s.command[:2], " "), exit.ExitCode())
	}
	return err
}

// table prints the stages with their times.
func table(out io.Writer, done []outcome, all []stage) {
	fmt.Fprintf(out, "\n%-8s %8s  %s\n", "stage", "seconds", "result")
	var total time.Duration
	for _, o := range done {
		total += o.took
		result := "passed"
		if o.err != nil {
			result = "failed"
		}
		fmt.Fprintf(out, "%-8s %8.0f  %s\n", o.name, o.took.Seconds(), result)
	}
	for _, s := range all[len(done):] {
		fmt.Fprintf(out, "%-8s %8s  not run\n", s.name, "")
	}
	fmt.Fprintf(out, "%-8s %8.0f  load %s\n", "all", total.Seconds(), load())
}

// load is the machine's, over one, five and fifteen minutes.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(text)); err == nil && len(fields) > 2 {
		return strings.Join(fields[:3], " ")
	}
	return "unknown"
}
