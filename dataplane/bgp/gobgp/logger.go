// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"
)

// serializeFailed is what GoBGP says, as a warning and nowhere else, when it drops an UPDATE that it cannot write.
const serializeFailed = "failed to serialize"

// passwordFailed is what GoBGP says, likewise, when it goes on without the password of a peer that dials.
const passwordFailed = "failed to set md5"

// quiet are messages of GoBGP that report what we do all the time, or what is meant to happen.
var quiet = map[string]bool{
	"call set policy":         true,
	"Neighbor soft reset out": true,
	"No matching path for withdraw found, may be path was not installed into table": true, // a refused path of a peer
}

// logger gives GoBGP's messages to a slog.Logger, and counts those that should have been errors.
type logger struct {
	log      *slog.Logger
	dropped  atomic.Uint64 // UPDATEs that GoBGP could not write
	unsigned atomic.Uint64 // passwords that it could not set
	faults   faults
}

// Panic and Fatal do not end the process: several members live in it. GoBGP's callers of both go on.
func (l *logger) Panic(msg string, f gobgplog.Fields) { l.write(slog.LevelError, msg, f) }
func (l *logger) Fatal(msg string, f gobgplog.Fields) { l.write(slog.LevelError, msg, f) }
func (l *logger) Error(msg string, f gobgplog.Fields) { l.write(slog.LevelError, msg, f) }
func (l *logger) Info(msg string, f gobgplog.Fields)  { l.write(slog.LevelInfo, msg, f) }
func (l *logger) Debug(msg string, f gobgplog.Fields) { l.write(slog.LevelDebug, msg, f) }

func (l *logger) Warn(msg string, f gobgplog.Fields) {
	switch msg {
	case serializeFailed:
		l.dropped.Add(1)
	case passwordFailed:
		l.unsigned.Add(1)
	}
	l.write(slog.LevelWarn, msg, f)
}

func (l *logger) write(level slog.Level, msg string, fields gobgplog.Fields) {
	l.faults.notice(msg, fields, l.log)
	if quiet[msg] {
		level = slog.LevelDebug
	}
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	attrs := make([]slog.Attr, 0, len(fields)+1)
	for k, v := range fields {
		attrs = append(attrs, slog.String(attrKey(k), fmt.Sprint(v)))
	}
	slices.SortFunc(attrs, func(a, b slog.Attr) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	l.log.LogAttrs(context.Background(), level, "gobgp", append([]slog.Attr{slog.String("event", msg)}, attrs...)...)
}

// attrKey translates the keys of GoBGP that have a name of ours.
func attrKey(k string) string {
	switch k {
	case "Key":
		return "peer"
	case "Topic":
		return "topic"
	case "State":
		return "state"
	case "Error", "Err":
		return "err"
	}
	return k
}

// SetLevel does nothing: the level is the slog.Logger's.
func (l *logger) SetLevel(gobgplog.LogLevel) {}

// GetLevel lets GoBGP skip building messages that nobody reads.
func (l *logger) GetLevel() gobgplog.LogLevel {
	ctx := context.Background()
	switch {
	case l.log.Enabled(ctx, slog.LevelDebug):
		return gobgplog.DebugLevel
	case l.log.Enabled(ctx, slog.LevelInfo):
		return gobgplog.InfoLevel
	case l.log.Enabled(ctx, slog.LevelWarn):
		return gobgplog.WarnLevel
	}
	return gobgplog.ErrorLevel
}
