// SPDX-License-Identifier: Apache-2.0

//go:build linux

package prober

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/dataplane/health"
	"fairlead.io/fairlead/fsm"
)

// Prober asks from one network namespace.
type Prober struct {
	// Namespace is its file descriptor; 0 is the process's own.
	Namespace int
	// Exempt says that programs at sockets resolve what sockets dial, but for those of health.Priority: sockets get that.
	Exempt bool
}

// errHost marks errors that are about this host, not about who is asked.
var errHost = errors.New("on this host")

// Probe implements health.Prober.
func (p Prober) Probe(ctx context.Context, t health.Target) health.Result {
	var err error
	switch t.Type {
	case desired.ProbeTCP:
		err = p.connect(ctx, t)
	case desired.ProbeHTTP, desired.ProbeHTTPS:
		err = p.get(ctx, t)
	case desired.ProbeUDP:
		err = p.datagram(ctx, t)
	case desired.ProbeICMP:
		err = p.echo(ctx, t)
	default:
		err = fmt.Errorf("%w: probes of type %q are not known", errHost, t.Type)
	}
	switch {
	case err == nil:
		return health.Result{OK: true}
	case ours(err):
		return health.Result{Void: true, Why: why(err, t)}
	}
	return health.Result{Why: why(err, t)}
}

// ours tells whether an error is about this host.
func ours(err error) bool {
	for _, host := range []error{
		errHost, unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.EADDRNOTAVAIL, unix.EAGAIN, unix.EADDRINUSE,
	} {
		if errors.Is(err, host) {
			return true
		}
	}
	return false
}

// why says it in a few words.
func why(err error, t health.Target) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %v", t.Timeout)
	}
	const most = 200
	return fsm.Text(err.Error(), most)
}

// connect probes by a connection.
func (p Prober) connect(ctx context.Context, t health.Target) error {
	c, err := p.dial(ctx, "tcp", t.At.String())
	if err != nil {
		return err
	}
	return closed(c)
}

// closed closes what answered; how that ends is nobody's concern.
func closed(c net.Conn) error {
	_ = c.Close()
	return nil
}

// dial connects a socket in the namespace.
func (p Prober) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	d := net.Dialer{Control: p.exempt, KeepAlive: -1}
	err = p.inside(func() (err error) {
		c, err = d.DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// exempt has programs at sockets leave a socket alone.
func (p Prober) exempt(_, _ string, raw syscall.RawConn) error {
	if !p.Exempt {
		return nil
	}
	if err := Exempt(raw); err != nil {
		return fmt.Errorf("%w: %w", errHost, err)
	}
	return nil
}

// Exempt has programs at sockets leave a socket alone, before it is connected. Errors: the process lacks CAP_NET_ADMIN.
func Exempt(raw syscall.RawConn) error {
	var err error
	if control := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PRIORITY, health.Priority)
	}); control != nil {
		err = control
	}
	if err != nil {
		return fmt.Errorf("set SO_PRIORITY (this needs CAP_NET_ADMIN): %w", err)
	}
	return nil
}

// inside calls f in the namespace. Sockets stay in the one that they were made in.
func (p Prober) inside(f func() error) error {
	if p.Namespace == 0 {
		return f()
	}
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err == nil {
		err = unix.Setns(p.Namespace, unix.CLONE_NEWNET)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("%w: enter the network namespace: %w", errHost, err)
	}
	defer own.Close()
	defer func() {
		if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread() // else the thread ends with the goroutine
		}
	}()
	return f()
}

// datagram probes by an empty datagram: only who says that nobody is there is not.
func (p Prober) datagram(ctx context.Context, t health.Target) error {
	c, err := p.dial(ctx, "udp", t.At.String())
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Now()) }) // wakes the reader; it can only fail once closed
	defer stop()
	if _, err := c.Write(nil); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return nil // silence
	}
	return err
}
