// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/raft"
)

// FirstIndex implements raft.LogStore.
func (j *Journal) FirstIndex() (uint64, error) { return j.first, nil }

// LastIndex implements raft.LogStore.
func (j *Journal) LastIndex() (uint64, error) { return j.last, nil }

// GetLog implements raft.LogStore.
func (j *Journal) GetLog(index uint64, log *raft.Log) error {
	e := j.entries[index]
	if e == nil {
		return raft.ErrLogNotFound
	}
	*log = *e
	return nil
}

// StoreLog implements raft.LogStore.
func (j *Journal) StoreLog(log *raft.Log) error { return j.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore.
func (j *Journal) StoreLogs(logs []*raft.Log) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	var records, payload []byte
	var sizes []int
	for _, e := range logs {
		payload = encodeEntry(payload[:0], e)
		records = record(records, payload)
		sizes = append(sizes, recordHead+len(payload))
	}
	if err := j.write(records); err != nil {
		return err
	}
	for i, e := range logs {
		kept := *e
		j.keep(&kept, sizes[i])
	}
	return nil
}

// DeleteRange implements raft.LogStore.
func (j *Journal) DeleteRange(first, last uint64) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.write(record(nil, encodeDelete(first, last))); err != nil {
		return err
	}
	j.drop(first, last)
	if j.size > rewriteAt && j.live < j.size/2 {
		return j.rewrite()
	}
	return nil
}

// Set implements raft.StableStore.
func (j *Journal) Set(key, value []byte) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.write(record(nil, encodeSet(key, value))); err != nil {
		return err
	}
	j.values[string(key)] = slices.Clone(value)
	return nil
}

// Get implements raft.StableStore.
func (j *Journal) Get(key []byte) ([]byte, error) {
	v, ok := j.values[string(key)]
	if !ok {
		return nil, errNotFound
	}
	return slices.Clone(v), nil
}

// SetUint64 implements raft.StableStore.
func (j *Journal) SetUint64(key []byte, value uint64) error {
	return j.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore.
func (j *Journal) GetUint64(key []byte) (uint64, error) {
	v, err := j.Get(key)
	if err != nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("value of %s: %d bytes, not 8", key, len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}

// Close implements io.Closer. It waits for a write that is under way.
func (j *Journal) Close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.file.Close()
}

// rewrite replaces the file by one without garbage.
func (j *Journal) rewrite() error {
	var records []byte
	for _, key := range slices.Sorted(maps.Keys(j.values)) {
		records = record(records, encodeSet([]byte(key), j.values[key]))
	}
	for i := j.first; i != 0 && i <= j.last; i++ {
		records = record(records, encodeEntry(nil, j.entries[i]))
	}
	next := j.path + ".next"
	f, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fault(next, "rewrite the log", err)
	}
	if _, err = f.Write(records); err == nil {
		err = durable(f)
	}
	if err == nil {
		err = os.Rename(next, j.path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(j.path))
	}
	if err != nil {
		_ = f.Close() // the first error counts
		return fault(j.path, "rewrite the log", err)
	}
	_ = j.file.Close() // everything in it is in the new one
	j.file, j.size, j.live = f, len(records), len(records)
	return nil
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing was written through it
	return d.Sync()
}
