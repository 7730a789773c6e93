// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"os"
	"time"
)

// patience is a connection that ends with ErrTimeout when a time is over in which this machine ran.
type patience struct {
	*os.File
	start   time.Time
	timeout time.Duration
	witness *witness
}

func newPatience(conn *os.File, start time.Time, timeout time.Duration, w *witness) (*patience, error) {
	return &patience{conn, start, timeout, w}, conn.SetDeadline(start.Add(timeout))
}

func (p *patience) Read(b []byte) (n int, err error) {
	err = p.try(func() error { n, err = p.File.Read(b); return err })
	return n, err
}

func (p *patience) Write(b []byte) (n int, err error) {
	err = p.try(func() error {
		m, err := p.File.Write(b[n:])
		n += m
		return err
	})
	return n, err
}

func (p *patience) try(f func() error) error {
	for {
		err := f()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		now := time.Now()
		end := p.start.Add(p.timeout + p.witness.paused(p.start, now))
		if !now.Before(end) {
			return ErrTimeout
		}
		if err := p.SetDeadline(end); err != nil {
			return err
		}
	}
}
