// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
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

// secondTry tells whether the kernel sent anything twice.
func (p *patience) secondTry() (bool, error) {
	raw, err := p.SyscallConn()
	if err != nil {
		return false, err
	}
	var info *unix.TCPInfo
	var failed error
	if err := raw.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); err != nil {
		return false, err
	}
	if failed != nil {
		return false, fmt.Errorf("read TCP_INFO: %w", failed)
	}
	return info.Total_retrans > 0, nil
}
