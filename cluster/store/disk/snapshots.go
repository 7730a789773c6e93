// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"fairlead.io/fairlead/cluster/store"
)

// begunSuffix ends the names of snapshots that the library has not finished.
const begunSuffix = ".tmp"

// snapshots is the library's file store without its forgiveness: it skips a snapshot that it cannot read and offers an
// older one, which the log no longer joins.
type snapshots struct {
	*raft.FileSnapshotStore
	path  string
	chmod func(path string, mode fs.FileMode) error // nil: there is nobody else

	// finishing is held while a snapshot takes its place and older ones go, and for reading by whoever looks at them: half of that looks like
	// damage.
	finishing sync.RWMutex
}

func openSnapshots(folder string, chmod func(string, fs.FileMode) error) (*snapshots, error) {
	path := filepath.Join(folder, snapshotsDir)
	if err := os.MkdirAll(path, 0o700); err != nil { // the library would have it open to others at first
		return nil, &store.Error{Path: path, Op: "open snapshots", Remedy: remedyOpen, Err: err}
	}
	inner, err := raft.NewFileSnapshotStoreWithLogger(folder, snapshotsKept, hclog.NewNullLogger()) // a Guard tells all
	if err != nil {
		return nil, &store.Error{Path: path, Op: "open snapshots", Remedy: remedyOpen, Err: err}
	}
	s := &snapshots{FileSnapshotStore: inner, path: path, chmod: chmod}
	if err := errors.Join(s.private(path), s.clean()); err != nil {
		return nil, &store.Error{Path: path, Op: "open snapshots", Remedy: remedyOpen, Err: err}
	}
	return s, nil
}

// clean removes what was begun and never finished, and finishes what was.
func (s *snapshots) clean() error {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(s.path, e.Name())
		switch _, finished := position(e.Name()); {
		case strings.HasSuffix(e.Name(), begunSuffix):
			err = os.RemoveAll(path)
		case finished && is(path, metaFile) && !is(path, sumFile):
			err = sealMeta(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// weed removes obsolete snapshots whose meta.json is not what was written. The library believes it where it removes old snapshots: one
// without an id has it remove the folder of all, and one with a higher index has it remove the newest. That one is nobody's to remove:
// List says what is wrong with it.
func (s *snapshots) weed() error {
	newest, err := s.newest()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(s.path, e.Name())
		if _, finished := position(e.Name()); finished && e.Name() != newest && checkMeta(path) != nil {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// is tells whether a folder has a file.
func is(folder, file string) bool {
	_, err := os.Stat(filepath.Join(folder, file))
	return err == nil
}

// List fails when the newest snapshot cannot be read. An older one may be half gone: that is how it is removed.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	s.finishing.RLock()
	defer s.finishing.RUnlock()
	newest, err := s.newest()
	if err != nil {
		return nil, s.error("list snapshots", err)
	}
	if newest != "" {
		if err := checkMeta(filepath.Join(s.path, newest)); store.Unread(err) { // the library would skip it
			return nil, s.error("read snapshot "+newest, err)
		}
	}
	list, err := s.FileSnapshotStore.List()
	if err != nil {
		return nil, s.error("list snapshots", err)
	}
	list = slices.DeleteFunc(list, func(m *raft.SnapshotMeta) bool { // obsolete, and weeded out before the next one is finished
		return m.ID != newest && (m.ID == "" || checkMeta(filepath.Join(s.path, m.ID)) != nil)
	})
	if newest != "" && (len(list) == 0 || list[0].ID != newest) {
		return nil, s.error("read snapshot "+newest, fmt.Errorf("%w: its meta.json is missing or damaged", store.ErrCorrupt))
	}
	if newest != "" {
		if err := checkMeta(filepath.Join(s.path, newest)); err != nil {
			return nil, s.error("read snapshot "+newest, err)
		}
	}
	return list, nil
}

// Open adds the path to the library's error.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	s.finishing.RLock()
	defer s.finishing.RUnlock()
	if err := checkMeta(filepath.Join(s.path, id)); err != nil {
		return nil, nil, s.error("open snapshot "+id, err)
	}
	meta, r, err := s.FileSnapshotStore.Open(id)
	if err != nil {
		if !store.Unread(err) {
			err = fmt.Errorf("%w: %w", store.ErrCorrupt, err)
		}
		return nil, nil, s.error("open snapshot "+id, err)
	}
	return meta, r, nil
}

func (s *snapshots) error(op string, err error) error {
	return &store.Error{Path: s.path, Op: op, Remedy: store.RemedyOf(err), Err: err}
}

// newest is the name of the newest snapshot, by what the names say; empty if there is none.
func (s *snapshots) newest() (string, error) {
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return "", err
	}
	var best string
	var at []uint64
	for _, e := range entries {
		if now, ok := position(e.Name()); ok && e.IsDir() && slices.Compare(now, at) > 0 {
			best, at = e.Name(), now
		}
	}
	return best, nil
}

// position reads term, index and time from a name that the library gave to a finished snapshot.
func position(name string) ([]uint64, bool) {
	parts := strings.Split(name, "-")
	if len(parts) != 3 {
		return nil, false
	}
	at := make([]uint64, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 64)
		if err != nil {
			return nil, false
		}
		at[i] = n
	}
	return at, true
}

// Create gives a sink whose folder entries are on disk too when Close returns. The library syncs the files and the
// folder above, but not the folder between; after a loss of power the snapshot could be an empty folder, with the log
// cut already.
func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	inner, err := s.FileSnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	if err := s.private(filepath.Join(s.path, inner.ID()+begunSuffix)); err != nil {
		return nil, errors.Join(err, inner.Cancel())
	}
	return &sink{SnapshotSink: inner, into: s, path: filepath.Join(s.path, inner.ID())}, nil
}

// private keeps a folder, and the files in it, from others: the library leaves that to the umask.
func (s *snapshots) private(folder string) error {
	if s.chmod == nil {
		return nil
	}
	if err := s.chmod(folder, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if err == nil && e.Type().IsRegular() {
			err = s.chmod(filepath.Join(folder, e.Name()), 0o600)
		}
	}
	return err
}

type sink struct {
	raft.SnapshotSink
	into *snapshots
	path string
}

// Close fails, and removes nothing, when the snapshot that was the newest so far is damaged: it may be what is wrong with the disk.
func (s *sink) Close() error {
	s.into.finishing.Lock()
	defer s.into.finishing.Unlock()
	newest, err := s.into.newest()
	if err == nil && newest != "" {
		err = checkMeta(filepath.Join(s.into.path, newest))
	}
	if err == nil {
		err = s.into.weed()
	}
	if err != nil {
		return errors.Join(err, s.Cancel())
	}
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	if err := syncDir(s.path); err != nil {
		return err
	}
	return sealMeta(s.path)
}
