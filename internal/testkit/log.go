// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"bytes"
	"strings"
	"sync"
)

// Log keeps what is written to it, and can be read while others write. The zero value is an empty one.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write is that of an io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count is how often a text was written so far.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
