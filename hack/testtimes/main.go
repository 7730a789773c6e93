// SPDX-License-Identifier: Apache-2.0

// Command testtimes tells what the tests' time goes into, as tables for docs/benchmarks.md. It reads the events of a whole run
// (hack/testrun -events FILE) and then runs the dearest tests once more, each alone and under strace, which says what programs it starts.
//
// It exits 1 when it could not find out, and 2 when it was called wrongly.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
)

const module = "fairlead.io/fairlead/"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	flags := flag.NewFlagSet("testtimes", flag.ContinueOnError)
	flags.SetOutput(errOut)
	dearest := flags.Int("dearest", 40, "how many tests to look at one by one")
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		fmt.Fprintln(errOut, "testtimes: it takes the file of events of a whole run: make test ARGS=\"-fresh -events FILE\"")
		return 2
	}
	file, err := os.Open(flags.Arg(0))
	if err != nil {
		fmt.Fprintln(errOut, "testtimes:", err)
		return 1
	}
	defer file.Close() // it was only read
	packages, tests, err := read(file)
	if err != nil {
		fmt.Fprintf(errOut, "testtimes: %s: %v\n", flags.Arg(0), err)
		return 1
	}
	byPackage(out, packages)
	return byTest(ctx, out, errOut, tests[:min(*dearest, len(tests))])
}

// timed is a package, or a test of one, with the seconds that it took among all others.
type timed struct {
	pkg, test string
	seconds   float64
	tests     int
}

// read gathers packages and their tests without subtests, the dearest first.
func read(events io.Reader) (packages, tests []timed, err error) {
	type event struct {
		Action, Package, Test string
		Elapsed               float64
	}
	of := map[string]*timed{}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, nil, err
		}
		if e.Test == "" || strings.Contains(e.Test, "/") || e.Action != "pass" && e.Action != "fail" {
			continue
		}
		pkg := strings.TrimPrefix(e.Package, module)
		if of[pkg] == nil {
			of[pkg] = &timed{pkg: pkg}
		}
		of[pkg].seconds += e.Elapsed
		of[pkg].tests++
		tests = append(tests, timed{pkg, e.Test, e.Elapsed, 1})
	}
	for _, p := range of {
		packages = append(packages, *p)
	}
	for _, list := range [][]timed{packages, tests} {
		slices.SortFunc(list, func(a, b timed) int {
			return cmp.Or(cmp.Compare(b.seconds, a.seconds), strings.Compare(a.pkg+a.test, b.pkg+b.test))
		})
	}
	return packages, tests, lines.Err()
}

// leastSeconds is what a package takes that has a line of its own.
const leastSeconds = 5

func byPackage(out io.Writer, packages []timed) {
	fmt.Fprint(out, "| package | tests | seconds, added up over its tests |\n|---|---|---|\n")
	var rest timed
	for _, p := range packages {
		if p.seconds >= leastSeconds {
			fmt.Fprintf(out, "| `%s` | %d | %.0f |\n", p.pkg, p.tests, p.seconds)
			continue
		}
		rest.seconds, rest.tests = rest.seconds+p.seconds, rest.tests+p.tests
	}
	fmt.Fprintf(out, "| all others | %d | %.0f |\n\n", rest.tests, rest.seconds)
}

func byTest(ctx context.Context, out, errOut io.Writer, tests []timed) int {
	fmt.Fprint(out, "| test | seconds among all | alone | processor | programs that it starts |\n|---|---|---|---|---|\n")
	code := 0
	for _, t := range tests {
		l, err := look(ctx, t.pkg, t.test)
		if err != nil {
			fmt.Fprintf(errOut, "testtimes: %s of %s: %v\n", t.test, t.pkg, err)
			code = 1
			continue
		}
		fmt.Fprintf(out, "| `%s` %s | %.1f | %.1f | %.1f | %s |\n", t.pkg, t.test, t.seconds, l.alone.Seconds(), l.processor.Seconds(), l.programs)
	}
	return code
}
