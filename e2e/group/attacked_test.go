// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/e2e/lab"
)

const (
	// mostMemory of a member, whoever comes.
	mostMemory = 300 << 20
	// mostWork is which part of a processor a member may take, where strangers come.
	mostWork = 2
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

// mostWait is how long the API may take to answer, whoever comes.
const mostWait = time.Second

// asked has a viewer ask each member how the group is, again and again, on a connection of its own each second time.
func asked(t *testing.T, l *lab.Lab) (end func() (slowest time.Duration)) {
	t.Helper()
	source, err := pki.OpenSource(l.Issue(pki.Viewer, "asks"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	slowest := make([]time.Duration, len(l.Members))
	for i, m := range l.Members {
		client := admin.NewClient(admin.ClientOptions{Endpoint: &pki.Endpoint{Source: source}, Servers: []string{m.Address + ":7443"}})
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				begin := time.Now()
				if _, err := client.Raft.Status(ctx, &fairleadv1.StatusRequest{}); err != nil && ctx.Err() == nil {
					t.Errorf("%s answers not: %v", m.Name, err)
				}
				slowest[i] = max(slowest[i], time.Since(begin))
				if n%2 == 0 {
					client.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
			client.Close()
		})
	}
	return func() time.Duration {
		cancel()
		all.Wait()
		return slices.Max(slowest)
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

// watched is what members of a group that is attacked have said and worked.
type watched struct {
	t     *testing.T
	l     *lab.Lab
	begin time.Time
	said  map[*lab.Member]int
	spent map[*lab.Member]time.Duration
	ended func() time.Duration
	asked func() time.Duration
}

func watch(t *testing.T, l *lab.Lab) *watched {
	t.Helper()
	w := &watched{t: t, l: l, begin: time.Now(), said: map[*lab.Member]int{}, spent: map[*lab.Member]time.Duration{}, ended: starved(), asked: asked(t, l)}
	for _, m := range l.Members {
		took, err := spent(m)
		if err != nil {
			t.Fatal(err)
		}
		w.said[m], w.spent[m] = strings.Count(m.Log(), "\n"), took
	}
	return w
}

// judge tells what became of the group: nothing. That another member leads counts if it was not this machine that stood still, on
// which a group without strangers loses its leader, too; how much of it they had members take is counted whatever the machine does.
func (w *watched) judge(before string) {
	w.t.Helper()
	slowest, worst, took := w.asked(), w.ended(), time.Since(w.begin)
	for _, m := range w.l.Members {
		if n, most := strings.Count(m.Log(), "\n")-w.said[m], int(took.Seconds())+20; n > most {
			w.t.Errorf("%s said %d lines in %v", m.Name, n, took)
		}
		if n, err := m.Memory(); err != nil || n > mostMemory {
			w.t.Errorf("%s takes %d MB: %v", m.Name, n>>20, err)
		}
		if n, err := spent(m); err != nil || n-w.spent[m] > took/mostWork {
			w.t.Errorf("%s worked for %v of %v: %v", m.Name, n-w.spent[m], took, err)
		}
	}
	judgeStanding(w.t, before, standing(w.t, w.l), worst)
	judgeAnswers(w.t, slowest, worst)
}

// judgeStanding fails the test if a group is not as it was, unless this machine stood still for too long meanwhile: a group that nobody
// attacks loses its leader then, too.
func judgeStanding(t *testing.T, before, after string, worst time.Duration) {
	t.Helper()
	switch {
	case after == before:
	case worst < tolerable:
		t.Errorf("before: %s, after: %s", before, after)
	default:
		t.Logf("this machine stood still for %v; before: %s, after: %s", worst, before, after)
	}
}

// judgeAnswers fails the test if an answer took too long, unless this machine stood still meanwhile.
func judgeAnswers(t *testing.T, slowest, worst time.Duration) {
	t.Helper()
	if slowest > mostWait && worst < tolerable {
		t.Errorf("an answer took %v, and this machine never stood still for longer than %v", slowest, worst)
	}
	t.Logf("the slowest answer took %v; this machine stood still for %v at most", slowest, worst)
}
