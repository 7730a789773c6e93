// SPDX-License-Identifier: Apache-2.0

// Command testreport reads the events of `go test -json` from standard input and prints what a person wants
// to know: a line per package, the output of what failed, what was skipped and why, and the count. It exits 1
// when anything failed or no test ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
)

type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

type report struct {
	output  map[string][]string // by package and test
	passed  int
	failed  []string
	skipped []string
}

func main() { os.Exit(run(os.Stdin, os.Stdout)) }

func run(in io.Reader, out io.Writer) int {
	r := report{output: map[string][]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(out, lines.Text())
			continue
		}
		r.take(e, out)
	}
	return r.close(out)
}

func (r *report) take(e event, out io.Writer) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "build-output":
		fmt.Fprint(out, e.Output)
	case "pass", "fail", "skip":
		r.end(e, key, out)
	}
}

func (r *report) end(e event, key string, out io.Writer) {
	defer delete(r.output, key)
	if e.Test == "" {
		if e.Action != "skip" { // a package without tests
			fmt.Fprintf(out, "%-4s %s %.1fs\n", e.Action, e.Package, e.Elapsed)
		}
		if e.Action == "fail" {
			fmt.Fprint(out, strings.Join(r.output[key], ""))
			r.failed = append(r.failed, e.Package)
		}
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed = append(r.failed, key)
		fmt.Fprint(out, strings.Join(r.output[key], ""))
	case "skip":
		r.skipped = append(r.skipped, key+": "+reason(r.output[key]))
	}
}

// reason is what a test said when it skipped itself.
func reason(lines []string) string {
	for _, l := range lines {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "===") && !strings.HasPrefix(l, "---") {
			return l
		}
	}
	return "no reason given"
}

func (r *report) close(out io.Writer) int {
	sort.Strings(r.skipped)
	for _, s := range r.skipped {
		fmt.Fprintln(out, "skipped:", s)
	}
	sort.Strings(r.failed)
	for _, f := range r.failed {
		fmt.Fprintln(out, "failed:", f)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", r.passed, len(r.failed), len(r.skipped))
	if len(r.failed) > 0 || r.passed == 0 {
		return 1
	}
	return 0
}
