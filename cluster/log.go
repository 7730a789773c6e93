// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// repeatEvery is how often the same thing may be said. The library complains about a dead peer at every heartbeat, a
// dozen times a second, for as long as the peer is away.
const repeatEvery = 10 * time.Second

// raftLog makes the library's log lines ours. What the null logger does for the methods that the library never
// calls is right for us too.
type raftLog struct {
	hclog.Logger
	log   *slog.Logger
	name  string
	calm  *calm
	debug bool
}

func newRaftLog(log *slog.Logger) hclog.Logger {
	return &raftLog{
		Logger: hclog.NewNullLogger(), log: log, calm: newCalm(),
		debug: log.Enabled(context.Background(), slog.LevelDebug),
	}
}

// calm remembers what was said when. Messages of the library are constants, so there are few of them.
type calm struct {
	mu   sync.Mutex
	said map[string]said
}

func newCalm() *calm { return &calm{said: map[string]said{}} }

type said struct {
	at         time.Time
	suppressed int
}

// say tells whether msg may be logged now, and how many like it were not.
func (c *calm) say(msg string) (suppressed int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, seen := c.said[msg]
	if seen && time.Since(last.at) < repeatEvery {
		last.suppressed++
		c.said[msg] = last
		return 0, false
	}
	c.said[msg] = said{at: time.Now()}
	return last.suppressed, true
}

func (l *raftLog) emit(level slog.Level, msg string, args []any) {
	if level <= slog.LevelDebug && !l.debug {
		return
	}
	if level >= slog.LevelWarn {
		suppressed, ok := l.calm.say(msg)
		if !ok {
			return
		}
		if suppressed > 0 {
			args = append(args[:len(args):len(args)], "suppressed", suppressed)
		}
	}
	l.log.Log(context.Background(), level, msg, args...)
}

func (l *raftLog) Log(level hclog.Level, msg string, args ...any) {
	switch {
	case level >= hclog.Error:
		l.Error(msg, args...)
	case level == hclog.Warn:
		l.Warn(msg, args...)
	case level == hclog.Info:
		l.Info(msg, args...)
	default:
		l.Debug(msg, args...)
	}
}

func (l *raftLog) Trace(msg string, args ...any) { l.emit(slog.LevelDebug-4, msg, args) }
func (l *raftLog) Debug(msg string, args ...any) { l.emit(slog.LevelDebug, msg, args) }

// Info of the library is detail to us: who leads and who is a member is logged by this package.
func (l *raftLog) Info(msg string, args ...any) { l.emit(slog.LevelDebug, msg, args) }
func (l *raftLog) Warn(msg string, args ...any) { l.emit(slog.LevelWarn, msg, args) }

// Error of the library is a warning to us: it goes on by itself, and what does not ends the member with an error.
func (l *raftLog) Error(msg string, args ...any) { l.emit(slog.LevelWarn, msg, args) }

func (l *raftLog) IsTrace() bool { return false }
func (l *raftLog) IsDebug() bool { return l.debug }
func (l *raftLog) IsInfo() bool  { return l.debug }
func (l *raftLog) IsWarn() bool  { return true }
func (l *raftLog) IsError() bool { return true }

func (l *raftLog) With(args ...any) hclog.Logger {
	sub := *l
	sub.log = l.log.With(args...)
	return &sub
}

func (l *raftLog) Name() string { return l.name }

func (l *raftLog) Named(name string) hclog.Logger { return l.ResetNamed(name) }

func (l *raftLog) ResetNamed(name string) hclog.Logger {
	sub := *l
	sub.name = name
	return &sub
}
