// SPDX-License-Identifier: Apache-2.0

// Package manifests is the source that reads a folder of Kubernetes manifests: the same YAML that one would apply to
// a cluster, kept in files. It yields a fsm/world.World and keeps it current while the files change.
//
// It promises to be hard to fool. A file that does not parse, cannot be read or is still being written counts as it
// last was, and so does one with a document that is no object where an object went with it. An object that became invalid
// keeps its last good form. A folder that is missing, unreadable or empty
// makes the view incomplete and removes nothing. An object that goes while the folder is read without trouble is
// evidence of a deletion (world.ByScan); one that is missing after trouble, or since an earlier run, is only absent,
// and the leader decides what that is worth.
//
// The folder comes as an fs.FS and edges of change as a channel, so that the package runs wherever Go does; package
// notify makes the channel from the kernel's file events. Start reading at Source.
package manifests

import (
	"context"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"fairlead.io/fairlead/fsm/world"
	"fairlead.io/fairlead/k8s/convert"
)

// Name is the World's Source, and Cluster its Cluster: a folder is part of no cluster.
const (
	Name    = "manifests"
	Cluster = "manifests"
)

// Times and bounds, for what Options leaves at zero and for what nobody needs to choose.
const (
	defaultPoll = time.Second
	// settle is how long a file must stay as it is before its new content counts: whoever writes it may not be done.
	settle = 100 * time.Millisecond
	// gone is how long a file must be missing, or an edit must stand that drops objects, before they are gone:
	// editors and version control take files away for a moment.
	gone = 500 * time.Millisecond
	// rereadEvery polls, files are read again that look untouched: an edit within one tick of a file system's clock
	// that keeps the size leaves no other trace.
	rereadEvery = 10

	maxFiles     = 10_000
	maxFileBytes = 64 << 20
	maxProblems  = 1_000
	maxDeleted   = 10_000
)

// Clock is the time the source lives by. Only differences of its readings matter.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Options says what to read and how.
type Options struct {
	// FS is the folder. Files ending in .yaml, .yml and .json are read, in subfolders too; names that begin with a
	// dot are not.
	FS fs.FS
	// Dir names the folder in messages.
	Dir   string
	Clock Clock
	// Logger is told of every new problem, once.
	Logger *slog.Logger
	// Poll is how often the folder is read through; zero means a second.
	Poll time.Duration
	// Notify asks for a reading before the next poll. It may be nil, and may say nothing of some changes.
	Notify <-chan struct{}
	// Review tells what of config maps has no effect; it may be nil.
	Review convert.Review
	// Namespaces are those from which objects are read that configure the fabric, beside such as name none; nil: all.
	Namespaces convert.Namespaces
	// NoCluster says that no API server is read beside the folder: drivers are told nothing of pods and Services then.
	NoCluster bool
}

// Source reads a folder of manifests. Its methods may be called from any goroutine; Run from one.
type Source struct {
	opts    Options
	changed chan struct{}
	folder  *folder // owned by Run

	mu     sync.Mutex
	world  world.World
	listed time.Time // when the newest complete reading began; zero if there was none
	heard  bool
}

// New returns a source that has read nothing yet: its World is incomplete until Run has read the folder.
func New(opts Options) *Source {
	if opts.Poll == 0 {
		opts.Poll = defaultPoll
	}
	s := &Source{opts: opts, changed: make(chan struct{}, 1), folder: newFolder(opts.FS, opts.Dir, rules{opts.Review, opts.Namespaces, opts.NoCluster})}
	s.world = s.folder.view
	return s
}

// Run reads the folder until ctx ends, and then returns nil. Trouble with the folder is in the World's problems,
// not an error: the source goes on and recovers when the folder does.
func (s *Source) Run(ctx context.Context) error {
	for {
		wait := s.scan()
		select {
		case <-ctx.Done():
			return nil
		case <-s.opts.Notify:
		case <-s.opts.Clock.After(wait):
		}
	}
}

// World gives the newest view. Its lists are shared and must not be changed; see world.World.Clone. Ages are those
// at the moment of the call.
func (s *Source) World() world.World {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.world
	w.Kinds = append([]world.KindView(nil), w.Kinds...)
	if s.heard {
		w.Age = s.opts.Clock.Now().Sub(s.listed)
	}
	for i := range w.Kinds {
		w.Kinds[i].Age, w.Kinds[i].ListAge, w.Kinds[i].ListedAge = w.Age, w.Age, w.Age
	}
	return w
}

// Changed holds a token after the World has changed, other than by growing older or by being confirmed.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// scan reads the folder once and tells when to read it next.
func (s *Source) scan() (wait time.Duration) {
	began := s.opts.Clock.Now()
	due, whole := s.folder.read(began)
	next := s.folder.view

	s.mu.Lock()
	before := s.world
	s.world = next
	if whole {
		s.listed, s.heard = began, true
	}
	s.mu.Unlock()

	if !next.Equal(&before) {
		s.report(before.Problems, next.Problems)
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	if due.IsZero() {
		return s.opts.Poll
	}
	return min(s.opts.Poll, max(due.Sub(s.opts.Clock.Now()), time.Millisecond))
}

// report logs the problems that were not there before.
func (s *Source) report(before, now []world.Problem) {
	known := make(map[world.Problem]bool, len(before))
	for _, p := range before {
		known[p] = true
	}
	for _, p := range now {
		if known[p] || p.Severity == world.Ignored {
			continue
		}
		s.opts.Logger.Warn("manifest not used as written", "dir", s.opts.Dir, "file", p.File, "line", p.Line,
			"object", p.Object.String(), "field", p.Field, "reason", p.Why, "remedy", p.Remedy)
	}
}
