// SPDX-License-Identifier: Apache-2.0

package torture_test

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// trace is what the nemesis did, and what came of it, in the order in which that happened.
type trace struct {
	began time.Time

	mu     sync.Mutex
	lines  []string
	counts map[string]int // of acts, by kind
}

func newTrace() *trace { return &trace{began: time.Now(), counts: map[string]int{}} }

// act notes something that the nemesis does.
func (tr *trace) act(kind, format string, args ...any) {
	tr.mu.Lock()
	tr.counts[kind]++
	tr.mu.Unlock()
	tr.note("%-8s %s", kind, fmt.Sprintf(format, args...))
}

// note notes something else.
func (tr *trace) note(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	at := time.Now()
	tr.lines = append(tr.lines, fmt.Sprintf("%s +%8.3fs  %s", at.UTC().Format("15:04:05.000"), at.Sub(tr.began).Seconds(), fmt.Sprintf(format, args...)))
}

// String is all of it.
func (tr *trace) String() string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return strings.Join(tr.lines, "\n") + "\n"
}

// last is its end.
func (tr *trace) last(lines int) string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return strings.Join(tr.lines[max(0, len(tr.lines)-lines):], "\n")
}
