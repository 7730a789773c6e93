// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is one of `go test -json` (cmd/test2json).
type event struct {
	Time                                                   time.Time `json:",omitzero"`
	Action, Package, Test, Output, ImportPath, FailedBuild string    `json:",omitempty"`
	Elapsed                                                float64   `json:",omitempty"`
}

// report gathers the events of all tests, from several readers at once, and prints what a person wants to know.
type report struct {
	mu      sync.Mutex
	out     io.Writer
	kept    *json.Encoder // nil: events are not kept
	file    io.Closer
	output  map[string][]string // by package and test
	passed  int
	whole   map[string]bool // tests that passed, as "package test", without those that are parts of one
	failed  []failure
	skipped []skip
	late    []string // end-to-end tests that took longer than their budget
}

// failure is a test, or a package without the name of one, that failed.
type failure struct{ pkg, test, words string }

// skip is a test that skipped itself.
type skip struct{ pkg, test, why string }

func newReport(out io.Writer, events string) (*report, error) {
	r := &report{out: out, output: map[string][]string{}, whole: map[string]bool{}}
	if events == "" {
		return r, nil
	}
	f, err := os.Create(events)
	if err != nil {
		return nil, err
	}
	r.file, r.kept = f, json.NewEncoder(f)
	return r, nil
}

// maxLine bounds a line of a program's output.
const maxLine = 16 << 20

// read takes events until the reader ends. If only one test runs, its package's end is not told: others of that package follow.
func (r *report) read(in io.Reader, only string) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	ended := only == ""
	var pkg string
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			r.print(lines.Text() + "\n")
			continue
		}
		pkg = e.Package
		if only != "" && e.Test == "" && e.Action != "output" {
			if e.Action == "fail" && !ended { // the process ended before the test did
				r.take(event{Time: e.Time, Action: "output", Package: pkg, Test: only, Output: r.words(pkg, "")})
				r.take(event{Time: e.Time, Action: "fail", Package: pkg, Test: only, Elapsed: e.Elapsed})
			}
			continue
		}
		ended = ended || e.Test == only && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip")
		r.take(e)
	}
	return lines.Err()
}

func (r *report) print(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprint(r.out, text)
}

func (r *report) words(pkg, test string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.output[pkg+" "+test], "")
}

// take takes one event.
func (r *report) take(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept != nil {
		_ = r.kept.Encode(e) // what is kept serves tables of times alone
	}
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.output[key] = append(r.output[key], e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "pass", "fail", "skip":
		r.end(e, key)
	}
}

// end takes the end of a test or, without the name of one, of a package.
func (r *report) end(e event, key string) {
	words := r.output[key]
	delete(r.output, key)
	if e.Test == "" {
		if e.Action != "skip" { // a package without tests
			fmt.Fprintf(r.out, "%-4s %s %.1fs\n", e.Action, e.Package, e.Elapsed)
		}
		r.unfinished(e)
		if e.Action == "fail" && !slices.ContainsFunc(r.failed, func(f failure) bool { return f.pkg == e.Package }) {
			r.fail(e.Package, "", words)
		}
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
		if !strings.Contains(e.Test, "/") {
			r.whole[key] = true
		}
	case "fail":
		r.fail(e.Package, e.Test, words)
	case "skip":
		r.skipped = append(r.skipped, skip{e.Package, e.Test, reason(words)})
	}
}

// unfinished fails the test in which a package's process ended, of a panic or of its time limit: go test says of a package that it failed,
// and nothing of the tests that were running.
func (r *report) unfinished(e event) {
	for key, words := range r.output {
		test, of := strings.CutPrefix(key, e.Package+" ")
		if !of {
			continue
		}
		delete(r.output, key)
		if e.Action == "fail" && slices.ContainsFunc(words, func(line string) bool { return processEnd.MatchString(line) }) {
			r.fail(e.Package, test, words)
		}
	}
}

// processEnd is how the runtime begins to tell why it ends the process.
var processEnd = regexp.MustCompile(`^(panic: |fatal error: )`)

func (r *report) fail(pkg, test string, words []string) {
	text := strings.Join(words, "")
	r.failed = append(r.failed, failure{pkg, test, text})
	fmt.Fprintf(r.out, "FAIL %s %s\n%s", pkg, test, text)
}

// broken tells of a package whose tests could not be run.
func (r *report) broken(pkg string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail(pkg, "", []string{err.Error(), "\n"})
}

// took tells how long a test with a process of its own took.
func (r *report) took(t single, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	over := ""
	if t.budget > 0 && d > t.budget {
		over = fmt.Sprintf(", over its budget of %v", t.budget)
		r.late = append(r.late, fmt.Sprintf("%s %s: %.1fs of %v", strings.TrimPrefix(t.pkg, module+"/"), t.name, d.Seconds(), t.budget))
	}
	fmt.Fprintf(r.out, "done %s %s %.1fs%s\n", t.pkg, t.name, d.Seconds(), over)
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

// close prints what is left to say, and reports whether something failed. What failed comes last, so that the end of a log tells it.
func (r *report) close(draws string) (failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		_ = r.file.Close() // as for its lines
	}
	slices.SortFunc(r.skipped, func(a, b skip) int { return strings.Compare(a.pkg+a.test, b.pkg+b.test) })
	leftOut := 0
	for _, s := range r.skipped {
		if strings.Contains(s.why, notFast) {
			leftOut++
			continue
		}
		fmt.Fprintf(r.out, "skipped: %s %s: %s\n", s.pkg, s.test, s.why)
	}
	if leftOut > 0 {
		fmt.Fprintf(r.out, "left out of the fast tests: %d; `make test` runs them\n", leftOut)
	}
	for _, l := range r.late {
		fmt.Fprintln(r.out, "over budget:", l)
	}
	if digest, n, err := drawsDigest(draws); err != nil {
		fmt.Fprintln(r.out, "digest of draws:", err)
	} else if n > 0 {
		fmt.Fprintf(r.out, "digest of the draws of %d properties: %s\n", n, digest)
	}
	slices.SortFunc(r.failed, func(a, b failure) int { return strings.Compare(a.pkg+a.test, b.pkg+b.test) })
	for _, f := range r.failed {
		fmt.Fprintf(r.out, "failed: %s %s: %s\n        again: %s\n", f.pkg, f.test, firstWords(f.words), repeat(f.pkg, f.test))
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, len(r.failed), len(r.skipped))
	return len(r.failed) > 0 || r.passed == 0
}

// verdict is a line with which the testing package or the runtime tells what is wrong: the place of a call of t.Error, or the end of the process.
var verdict = regexp.MustCompile(`^(\w+_test\.go:\d+: |panic: |fatal error: |WARNING: DATA RACE)`)

// firstWords is the first line of a test's output in which it says what is wrong, or the first one that says anything.
func firstWords(output string) string {
	first := "see above"
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "===") || strings.HasPrefix(line, "---") || strings.Contains(line, "[rapid] OK"):
		case verdict.MatchString(line):
			return cut(line)
		case first == "see above":
			first = line
		}
	}
	return cut(first)
}

// cut gives as much of a line as there is room for.
func cut(line string) string { return strings.ToValidUTF8(line[:min(len(line), 300)], "") }
