// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const module = "fairlead.io/fairlead"

// suite is the packages that have tests, by how they run.
type suite struct {
	units     []string // as go test runs them, several at once
	worlds    []string // one at a time: each keeps all cores busy with simulated worlds
	processes []string // each test in a process of its own, several at once
	alone     []string // likewise, one at a time and beside nothing else: what asks for more of a machine than others leave it
}

// add puts a package where it runs: end-to-end packages start groups of processes and wait for them most of the time; these of the
// simulator play whole worlds.
func (s *suite) add(pkg string) {
	name := strings.TrimPrefix(pkg, module+"/")
	switch {
	case name == "e2e/demo": // clients that ask all along would slow others down
		s.alone = append(s.alone, pkg)
	case strings.HasPrefix(name, "e2e/"):
		s.processes = append(s.processes, pkg)
	case name == "sim", name == "sim/balancer", name == "sim/whatif", name == "sim/mutants", name == "sim/vm", name == "sim/program":
		s.worlds = append(s.worlds, pkg)
	default:
		s.units = append(s.units, pkg)
	}
}

// findSuite lists the packages of the checkout that have tests.
func findSuite(ctx context.Context, only string) (suite, error) {
	var s suite
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}", "./...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	text, err := list.Output()
	if err != nil {
		return s, fmt.Errorf("list packages: %w\n%s", err, stderr.String())
	}
	for pkg := range strings.FieldsSeq(string(text)) {
		if strings.Contains(pkg, only) {
			s.add(pkg)
		}
	}
	return s, nil
}

// runSuite runs what o asks for, and reports whether something failed.
func runSuite(ctx context.Context, o options, out io.Writer) (failed bool, err error) {
	s, err := findSuite(ctx, o.only)
	if err != nil {
		return false, err
	}
	work, err := os.MkdirTemp("", "fairlead-testrun-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(work)
	r, err := newReport(out, o.events)
	if err != nil {
		return false, err
	}
	e := &executor{options: o, report: r, work: work, draws: filepath.Join(work, "draws")}
	if err := os.Mkdir(e.draws, 0o755); err != nil {
		return false, err
	}
	switch o.set {
	case "fast":
		err = e.goTest(ctx, s.units, fastTests)
	case "rest":
		err = e.rest(ctx, s)
	case "race":
		err = e.race(ctx, s.units)
	default:
		err = e.beside(ctx, s, func(ctx context.Context) error { return e.goTest(ctx, s.units, allTests) })
	}
	if err != nil {
		return false, err
	}
	if o.left != "" {
		if err := e.handOn(); err != nil {
			return false, err
		}
	}
	return r.close(e.draws), nil
}

// handOn says what tests are left for -set rest: what -set fast left out, of which -set race runs a part.
func (e *executor) handOn() error {
	switch e.set {
	case "fast":
		return writeLeft(e.left, e.report.leftOut())
	case "race":
		left, err := readLeft(e.left)
		if err != nil {
			return err
		}
		drew, err := drawn(e.draws)
		if err != nil {
			return err
		}
		return writeLeft(e.left, e.report.stillLeft(left, drew))
	}
	return nil
}

// playsWorlds is a unit package of which the tests that -set fast leaves out play worlds: they are run once the other units are through.
const playsWorlds = module + "/cmd/fairlead"

// rest runs what -set fast left out: of unit packages the tests that skipped themselves, and all other packages.
func (e *executor) rest(ctx context.Context, s suite) error {
	left, err := readLeft(e.left)
	if err != nil {
		return err
	}
	var units, late, names []string
	for _, pkg := range s.units {
		tests := left[pkg]
		names = append(names, tests...)
		switch {
		case len(tests) == 0:
		case pkg == playsWorlds:
			late = append(late, pkg)
		default:
			units = append(units, pkg)
		}
	}
	slices.Sort(names)
	which := "^(" + strings.Join(slices.Compact(names), "|") + ")$"
	return e.beside(ctx, s, func(ctx context.Context) error {
		if err := e.goTest(ctx, units, which); err != nil {
			return err
		}
		return e.goTest(ctx, late, which)
	})
}

// beside runs end-to-end tests beside units, and simulated worlds after those; last of all what has to be alone.
func (e *executor) beside(ctx context.Context, s suite, units func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	errs := make([]error, 2)
	group.Go(func() {
		if errs[0] = e.processes(ctx, s.processes, e.lanes); errs[0] != nil {
			cancel()
		}
	})
	group.Go(func() {
		if errs[1] = units(ctx); errs[1] == nil {
			errs[1] = e.worlds(ctx, s.worlds)
		}
		if errs[1] != nil {
			cancel()
		}
	})
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return e.processes(ctx, s.alone, 1)
}

func quote(name string) string { return regexp.QuoteMeta(name) }
