// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package program

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/dataplane/sock"
)

// limited is a flag of an event, as sock.c has it.
const limited = 1

// Events calls tell with every event until ctx ends, which it then gives back. What programs had to tell while nobody read is told first, as
// far as there was room.
func (p *Program) Events(ctx context.Context, tell func(sock.Event)) error {
	r, err := ringbuf.NewReader(p.maps.Events)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = r.Close() })()
	defer func() { _ = r.Close() }() // it was only read
	var record ringbuf.Record
	for {
		err := r.ReadInto(&record)
		if errors.Is(err, os.ErrClosed) && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		e, err := decodeEvent(record.RawSample)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		tell(e)
	}
}

func decodeEvent(raw []byte) (sock.Event, error) {
	var e sockEvent
	if _, err := binary.Decode(raw, binary.NativeEndian, &e); err != nil {
		return sock.Event{}, err
	}
	at, err := sinceBoot(e.Time)
	if err != nil {
		return sock.Event{}, err
	}
	out := sock.Event{
		Time: at, Cgroup: e.Cgroup, PID: e.Pid, Rule: e.Rule, To: decodePlace(e.To), Failure: sock.Failure(e.Failure),
		Kind: sock.Kind(e.Kind), Mode: sock.Mode(e.Mode), Limited: e.Flags&limited != 0, IPv4: e.Family == syscall.AF_INET,
	}
	if backend := decodePlace(e.Backend); backend.Port != 0 {
		out.Backend = netip.AddrPortFrom(backend.Address, backend.Port)
	}
	return out, nil
}

// sinceBoot is when the machine had run for so many nanoseconds.
func sinceBoot(ns uint64) (time.Time, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Time{}, err
	}
	return time.Now().Add(time.Duration(int64(ns) - now.Nano())), nil
}
