// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// looked is what a test does that runs alone: what it takes, of which it computes some, its children included, and waits for the rest.
type looked struct {
	alone, processor time.Duration
	programs         string
}

// look builds a test and runs it alone under strace.
func look(ctx context.Context, pkg, test string) (looked, error) {
	dir, err := os.MkdirTemp("", "fairlead-testtimes-")
	if err != nil {
		return looked{}, err
	}
	defer os.RemoveAll(dir)
	binary, trace := filepath.Join(dir, "it.test"), filepath.Join(dir, "trace")
	if text, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./"+pkg).CombinedOutput(); err != nil {
		return looked{}, fmt.Errorf("build: %w: %s", err, text)
	}
	cmd := exec.CommandContext(ctx, "strace", "-f", "-qq", "--seccomp-bpf", "-e", "trace=execve", "-e", "signal=none", "-o", trace,
		binary, "-test.run=^"+regexp.QuoteMeta(test)+"$", "-test.count=1")
	cmd.Dir = pkg
	began := time.Now()
	text, err := cmd.CombinedOutput()
	if err != nil {
		return looked{}, fmt.Errorf("%w: %s", err, text[max(0, len(text)-500):])
	}
	l := looked{alone: time.Since(began), processor: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	calls, err := os.ReadFile(trace)
	l.programs = programs(string(calls))
	return l, err
}

// started is a call of execve that succeeded: the program's path and its first argument.
var started = regexp.MustCompile(`(?m)^\d+ +execve\("([^"]*)", \["([^"]*)".* = 0$`)

// programs counts what was started, by name, the most frequent first, but for the test itself.
func programs(trace string) string {
	count := map[string]int{}
	for _, m := range started.FindAllStringSubmatch(trace, -1) {
		name := path.Base(m[1])
		if strings.HasPrefix(m[2], "simguest") {
			name = "simulated process"
		}
		if !strings.HasSuffix(name, ".test") {
			count[name]++
		}
	}
	var names []string
	for name := range count {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b)) })
	var list []string
	for _, name := range names[:min(len(names), 6)] {
		list = append(list, fmt.Sprintf("%d %s", count[name], name))
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
