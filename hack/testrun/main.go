// SPDX-License-Identifier: Apache-2.0

// Command testrun runs the project's tests and says what a person wants to know of them: a line per package, the output of what
// failed and the command that repeats it, what was skipped and why, which end-to-end tests took longer than their budget, and the count.
//
// It knows three kinds of packages (suite.go). Unit packages run as `go test` has them, several at once and at a lower priority. Packages
// that run groups of processes are built once; then each of their tests is a process of its own, in network namespaces of its own, and
// several of them run beside each other, the dearest first. Packages that play simulated worlds come one after the other, since a world
// keeps a core busy.
//
// With -set fast nothing runs that needs root, a real server or a simulated world (testkit.NotFast), and with -set rest just what that
// left out. -set race is packages with goroutines under the race detector; given a file with -left, -set rest does not repeat what passed there
// as a whole. Start reading at run.
//
// It exits 1 when anything failed or no test ran, and 2 when it was called wrongly.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are what the caller chose.
type options struct {
	set     string   // all, fast, rest or race
	left    string   // file with the tests that -set fast left out, written by it, made shorter by -set race, and read by -set rest
	events  string   // file for the events of all tests
	lanes   int      // tests with processes of their own that run at once
	fresh   bool     // no result of an earlier run counts
	goTest  []string // more arguments of go test, for unit packages and simulated worlds
	only    string   // part of an import path
	verbose io.Writer
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	o := options{verbose: errOut}
	flags := flag.NewFlagSet("testrun", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.StringVar(&o.set, "set", "all", "which tests: all, fast (no root, no servers, no worlds), rest (what fast left out), or race (packages with goroutines, under the race detector)")
	flags.StringVar(&o.left, "left", "", "file with the names of tests that fast left out: written with -set fast, made shorter with -set race and -fresh, read with -set rest")
	flags.StringVar(&o.events, "events", "", "file to which the events of all tests are written, as `go test -json` has them")
	flags.IntVar(&o.lanes, "lanes", 1+runtime.NumCPU(), "end-to-end tests that run at once")
	flags.BoolVar(&o.fresh, "fresh", false, "run tests whose result is known, too")
	flags.StringVar(&o.only, "only", "", "only packages whose import path contains this")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	o.goTest = flags.Args()
	if !slices.Contains([]string{"all", "fast", "rest", "race"}, o.set) || o.set == "rest" && o.left == "" ||
		o.set == "race" && o.left != "" && !o.fresh || o.lanes < 1 {
		fmt.Fprintln(errOut, "testrun: -set takes all, fast, rest or race; rest needs -left FILE, and race with -left needs -fresh; -lanes takes a number from 1")
		return 2
	}
	failed, err := runSuite(ctx, o, out)
	if err != nil {
		fmt.Fprintln(errOut, "testrun:", err)
		return 1
	}
	if failed {
		return 1
	}
	return 0
}

// repeat is the command that runs one test again.
func repeat(pkg, test string) string {
	folder := "./" + strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
	if test == "" {
		return "go test -count=1 " + folder
	}
	var parts []string
	for part := range strings.SplitSeq(test, "/") {
		parts = append(parts, "^"+quote(part)+"$")
	}
	return fmt.Sprintf("go test -count=1 -run '%s' %s", strings.Join(parts, "/"), folder)
}
