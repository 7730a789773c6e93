// SPDX-License-Identifier: Apache-2.0

package gobgp

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// serializeFailed is what GoBGP says, as a warning and nowhere else, when it drops an UPDATE that it cannot write.
const serializeFailed = "failed to serialize"

// passwordFailed is what GoBGP says, likewise, when it goes on without the password of a peer that dials.
const passwordFailed = "failed to set md5"

// nobodysConnection is what GoBGP says of each connection that it closes at once, as it is of nobody whom it peers with.
const nobodysConnection = "Can't find configuration for a new passive connection"

// nobodyAgain is how often that is passed on: it shows a switch that dials from another address than it was said to, and
// strangers who connect again and again fill no log.
const nobodyAgain = 10 * time.Second

// quiet are messages of GoBGP that report what we do all the time, or what is meant to happen.
var quiet = map[string]bool{
	"call set policy":         true,
	"Neighbor soft reset out": true,
	"sent notification":       true, // what it means is told as a fault, once
	"received notification":   true,
	"No matching path for withdraw found, may be path was not installed into table": true, // a refused path of a peer
}

// logger is where GoBGP logs. It passes messages on, counts those that should have been errors, and learns faults of sessions from them.
type logger struct {
	log      *slog.Logger
	dropped  atomic.Uint64             // UPDATEs that GoBGP could not write
	unsigned atomic.Uint64             // passwords that it could not set
	nobody   atomic.Pointer[time.Time] // when a stranger's connection was passed on last; nil: never
	talk     *rate.Limiter
	faults   faults
	written  func(attributes) // told of each UPDATE that GoBGP has written
	received func(attributes) // told of each UPDATE that GoBGP is about to take in
	up       func(attributes) // told of each peer that is up, before its session opens
}

func newLogger(log *slog.Logger) *logger {
	return &logger{log: log, talk: rate.NewLimiter(rate.Every(talkAgain), talkAtOnce)}
}

// attributes are what a message of GoBGP is about, by its own keys.
type attributes map[string]slog.Value

// octet is a number that a NOTIFICATION has one byte for; 0 if it is not there.
func (a attributes) octet(key string) uint8 {
	if v := a[key].Resolve(); v.Kind() == slog.KindInt64 {
		return uint8(v.Int64())
	}
	return 0
}

// observe takes in a message, and gives the level under which to pass it on.
func (l *logger) observe(level slog.Level, event string, about attributes) slog.Level {
	switch event {
	case serializeFailed:
		l.dropped.Add(1)
	case passwordFailed:
		l.unsigned.Add(1)
	case sentUpdate:
		l.written(about)
		return level
	case receivedUpdate:
		l.received(about)
		return level
	case peerUp:
		l.up(about)
	case nobodysConnection:
		return l.ofNobody(level, time.Now())
	}
	l.faults.notice(event, about, l.log, l.ofPeer)
	switch _, ofPeer := about["Key"]; {
	case quiet[event]:
		return slog.LevelDebug
	case ofPeer:
		return l.ofPeer(level)
	}
	return level
}

// What is said of peers at once, and one line more for each time that passed since: peers whose sessions come and go, or that send
// nonsense, fill no log.
const (
	talkAtOnce = 32
	talkAgain  = time.Second
)

// ofPeer is the level under which to say something of a peer now.
func (l *logger) ofPeer(level slog.Level) slog.Level {
	if level >= slog.LevelInfo && !l.talk.Allow() {
		return slog.LevelDebug
	}
	return level
}

// ofNobody is the level under which to pass on that a connection is of no peer.
func (l *logger) ofNobody(level slog.Level, now time.Time) slog.Level {
	last := l.nobody.Load()
	if last != nil && now.Sub(*last) < nobodyAgain || !l.nobody.CompareAndSwap(last, &now) {
		return slog.LevelDebug
	}
	return level
}

// handler gives GoBGP's messages to its logger. Errors: none.
type handler struct {
	*logger
	bound []slog.Attr // that all messages bear
}

// Enabled lets all messages pass, whether anybody reads them or not: faults are learnt from some, and what was written.
func (h handler) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.logger, slices.Concat(h.bound, attrs)}
}

// WithGroup implements slog.Handler. GoBGP has no groups.
func (h handler) WithGroup(string) slog.Handler { return h }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo && r.Message != sentUpdate && r.Message != receivedUpdate && !h.log.Enabled(ctx, r.Level) {
		return nil
	}
	attrs := slices.Clone(h.bound)
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	about := make(attributes, len(attrs))
	for _, a := range attrs {
		about[a.Key] = a.Value
	}
	level := h.observe(r.Level, r.Message, about)
	if !h.log.Enabled(ctx, level) {
		return nil
	}
	for i, a := range attrs {
		attrs[i] = slog.String(attrKey(a.Key), a.Value.String())
	}
	slices.SortFunc(attrs, func(a, b slog.Attr) int { return strings.Compare(a.Key, b.Key) })
	h.log.LogAttrs(ctx, level, "gobgp", append([]slog.Attr{slog.String("event", r.Message)}, attrs...)...)
	return nil
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
