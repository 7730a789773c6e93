// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"
	"sync"
	"time"
)

// sending is how far this member is with snapshots that it sends.
type sending struct {
	mu    sync.Mutex
	calls int
	total uint64    // bytes since the start
	at    time.Time // of the newest one
}

// of gives a snapshot whose bytes are counted, until end is called.
func (s *sending) of(data io.Reader) (counted io.Reader, end func()) {
	s.count(1, 0)
	return sent{data, s}, func() { s.count(-1, 0) }
}

func (s *sending) count(calls, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls += calls
	s.total += uint64(bytes)
	s.at = time.Now()
}

func (s *sending) bytes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// underWay tells whether a snapshot is on its way, and whoever gets it had the last of it no longer ago than that.
func (s *sending) underWay(within time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls > 0 && time.Since(s.at) < within
}

// sent counts what is read of a snapshot.
type sent struct {
	io.Reader
	by *sending
}

func (s sent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.by.count(0, n)
	return n, err
}
