// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/e2e/lab"
)

// attackFor is for how long a group is attacked: FAIRLEAD_ATTACK_FOR (60s), or as long as it takes to see whether it does anything.
func attackFor(t *testing.T, otherwise time.Duration) time.Duration {
	t.Helper()
	asked := os.Getenv("FAIRLEAD_ATTACK_FOR")
	if asked == "" {
		return otherwise
	}
	d, err := time.ParseDuration(asked)
	if err != nil {
		t.Fatalf("FAIRLEAD_ATTACK_FOR: %v", err)
	}
	return d
}

// tolerable is how long this machine may stand still without a follower missing its leader: half of what it waits for it (150 ms).
const tolerable = 75 * time.Millisecond

// starved watches how long this machine lets a process wait that has something to do. A group whose members wait for so long loses its
// leader whether anybody attacks it or not.
func starved() (end func() (worst time.Duration)) {
	const glance = 5 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var worst time.Duration
	all.Go(func() {
		for due := time.Now().Add(glance); ctx.Err() == nil; due = time.Now().Add(glance) {
			time.Sleep(glance)
			worst = max(worst, time.Since(due))
		}
	})
	return func() time.Duration {
		cancel()
		all.Wait()
		return worst
	}
}

// spent is the time that processors have worked for a member and not for its children, in all.
func spent(m *lab.Member) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.PID()))
	if err != nil {
		return 0, err
	}
	var ticks int
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, i := range []int{11, 12} { // utime and stime
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil // the kernel shows hundredths on every architecture
}
