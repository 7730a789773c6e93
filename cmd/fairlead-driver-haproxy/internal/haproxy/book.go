// SPDX-License-Identifier: Apache-2.0

package haproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fairlead.io/fairlead/dataplane/agent/disk"
)

// Book is the file with the servers that the driver was asked for, and the journal of what changed since it was written.
// HAProxy forgets its servers when it restarts; the book says what to put back, and into which process of HAProxy
// everything has been put already.
type Book struct {
	file    *disk.File
	journal *journal
	lock    io.Closer
	path    string

	mu      sync.Mutex
	servers map[key]wish
	process Process
	version uint64 // rises with each change
	changes []byte // since the last Save, for the journal
	whole   bool   // the changes are not enough

	saving  sync.Mutex // is held around what follows, and the files
	saved   uint64     // version of what is in the files
	edition uint64     // of the file
}

// page is the file. Its format is 1.
type page struct {
	Format int `json:"format"`
	// Edition is the number of the file: that of its journal is the same.
	Edition uint64  `json:"edition"`
	HAProxy Process `json:"haproxy"`
	Servers []line  `json:"servers"`
}

type line struct {
	Backend string `json:"backend"`
	Address string `json:"address"`
	Weight  int    `json:"weight"`
	MaxConn int    `json:"maxconn"`
	// Interval of health checks is in milliseconds; 0 for none.
	Interval int64 `json:"interval_ms,omitempty"`
}

// OpenBook reads a book, an empty one if there is no file, and keeps other processes out of its folder until Close.
// Errors: the folder cannot be used, another process uses it, or the file is not one that a Book wrote.
func OpenBook(path string) (*Book, error) {
	dir, name := filepath.Split(path)
	if name == "" || name == disk.LockName {
		return nil, fmt.Errorf("keep state in %s: name a file in a folder", path)
	}
	if dir == "" {
		dir = "."
	}
	lock, err := disk.Lock(dir)
	if err != nil {
		return nil, err
	}
	b := &Book{lock: lock, path: path, servers: map[key]wish{}}
	if err := b.read(dir, name); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if b.journal, err = openJournal(b.journalPath()); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return b, nil
}

func (b *Book) journalPath() string { return b.path + ".journal" }

func (b *Book) read(dir, name string) (err error) {
	if b.file, err = disk.Open(dir, name); err != nil {
		return err
	}
	data, err := b.file.Load()
	if err != nil || data == nil {
		return err
	}
	var p page
	if err = json.Unmarshal(data, &p); err == nil && p.Format != 1 {
		err = fmt.Errorf("its format is %d, not 1", p.Format)
	}
	for _, l := range p.Servers {
		if err != nil {
			break
		}
		err = b.take(l)
	}
	if err == nil {
		err = b.replay(p.Edition)
	}
	if err != nil {
		return fmt.Errorf("read state %s: %w; move the file away: servers come back when they are ensured again", b.path, err)
	}
	b.process, b.edition = p.HAProxy, p.Edition
	return nil
}

// replay reads what changed after the file was written.
func (b *Book) replay(edition uint64) error {
	entries, err := readJournal(b.journalPath(), edition)
	for _, e := range entries {
		switch {
		case err != nil:
		case e.Put != nil:
			err = b.take(*e.Put)
		case e.Drop != nil:
			var k key
			k, err = e.Drop.key()
			delete(b.servers, k)
		}
	}
	return err
}

// take reads one server.
func (b *Book) take(l line) error {
	k, err := l.key()
	if err == nil {
		b.servers[k] = wish{weight: l.Weight, maxConn: l.MaxConn, interval: time.Duration(l.Interval) * time.Millisecond}
	}
	return err
}

func (l line) key() (key, error) {
	backend, err := parseBackend(map[string]string{backendKey: l.Backend})
	if err != nil {
		return key{}, err
	}
	address, err := parseAddress(l.Address)
	return key{backend, address}, err
}

func lineOf(k key, w wish) *line {
	return &line{Backend: k.backend, Address: k.address.String(), Weight: w.weight, MaxConn: w.maxConn, Interval: w.interval.Milliseconds()}
}

// Close lets others use the folder.
func (b *Book) Close() error { return errors.Join(b.journal.close(), b.lock.Close()) }

// put notes that a server is wanted. Save makes it last.
func (b *Book) put(k key, w wish) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if have, ok := b.servers[k]; !ok || have != w {
		b.servers[k] = w
		b.changes = entry{Put: lineOf(k, w)}.append(b.changes)
		b.version++
	}
}

// drop notes that a server is not wanted any more.
func (b *Book) drop(k key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.servers[k]; ok {
		delete(b.servers, k)
		b.changes = entry{Drop: lineOf(k, wish{})}.append(b.changes)
		b.version++
	}
}

// moveTo notes that everything is in a process of HAProxy.
func (b *Book) moveTo(p Process) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != p {
		b.process, b.whole = p, true
		b.version++
	}
}

// in is the process that everything has been put into.
func (b *Book) in() Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.process
}

// wanted lists the servers that are wanted, in order.
func (b *Book) wanted() ([]key, map[key]wish) {
	b.mu.Lock()
	defer b.mu.Unlock()
	servers := maps.Clone(b.servers)
	return slices.SortedFunc(maps.Keys(servers), key.compare), servers
}

// Save makes all changes last that were noted before it was called. Those who call at the same time share one write.
func (b *Book) Save() error {
	b.mu.Lock()
	version := b.version
	b.mu.Unlock()
	b.saving.Lock()
	defer b.saving.Unlock()
	if b.saved >= version {
		return nil // somebody else's write had it
	}
	b.mu.Lock()
	version, changes, whole := b.version, b.changes, b.whole
	b.changes = nil
	b.mu.Unlock()
	var err error
	if whole || !b.journal.takes(changes) {
		version, err = b.rewrite()
	} else {
		err = b.journal.append(changes)
	}
	if err != nil {
		return fmt.Errorf("write state %s: %w", b.path, err)
	}
	b.saved = version
	return nil
}

// rewrite replaces the file, and begins its journal.
func (b *Book) rewrite() (version uint64, err error) {
	data, version, err := b.encode(b.edition + 1)
	if err != nil {
		return 0, err
	}
	b.journal.broken = true // until the file is what is said to be in it
	if err := b.file.Save(data); err != nil {
		return 0, err
	}
	b.edition++
	if err := b.journal.restart(b.edition); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whole = b.whole && b.version != version
	return version, nil
}

func (b *Book) encode(edition uint64) ([]byte, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := page{Format: 1, Edition: edition, HAProxy: b.process, Servers: make([]line, 0, len(b.servers))}
	for _, k := range slices.SortedFunc(maps.Keys(b.servers), key.compare) {
		p.Servers = append(p.Servers, *lineOf(k, b.servers[k]))
	}
	data, err := json.MarshalIndent(p, "", " ")
	return append(data, '\n'), b.version, err
}
