// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"

	"fairlead.io/fairlead/dataplane/nat"
	"fairlead.io/fairlead/dataplane/steer"
	"fairlead.io/fairlead/sim/kernel/message"
)

// Port is where kernels answer.
const Port = "kernel"

// Dial connects to a port of a machine.
type Dial func(ctx context.Context, host, port string, hello []byte) (net.Conn, error)

// Kernel is that of the machine that this process runs on.
type Kernel struct {
	dial    Dial
	machine string

	mu   sync.Mutex // held for the time of a call
	conn *conn      // nil: has to be opened
}

// Errno is an error of the kernel, by its name.
type Errno string

// Error implements error.
func (e Errno) Error() string { return string(e) }

// Open makes a Kernel of a machine; the connection is made by the first call.
func Open(dial Dial, machine string) *Kernel { return &Kernel{dial: dial, machine: machine} }

// Steer makes a Steer over this kernel.
func (k *Kernel) Steer(o steer.Options) (*steer.Steer, error) {
	return steer.Over(o, &steering{kernel: k})
}

// NAT makes a NAT over this kernel. Options.NodeAddresses should name the node's own.
func (k *Kernel) NAT(o nat.Options) (*nat.NAT, error) {
	return nat.Over(o, &translation{k, cmp.Or(o.Table, nat.TableName)})
}

// Boot tells what the machine drew at its last boot.
func (k *Kernel) Boot(ctx context.Context) (string, error) {
	a, err := k.call(ctx, message.Request{Dump: &message.Dump{}})
	return a.Boot, err
}

// Close ends the connection. Another call opens a new one.
func (k *Kernel) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop()
}

func (k *Kernel) drop() {
	if k.conn != nil {
		_ = k.conn.Close() // nothing is left to be said
		k.conn = nil
	}
}

// call makes one system call.
func (k *Kernel) call(ctx context.Context, r message.Request) (message.Answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn == nil {
		c, err := k.open(ctx)
		if err != nil {
			return message.Answer{}, err
		}
		k.conn = c
	}
	a, err := k.conn.ask(r)
	if err != nil {
		k.drop()
		return a, fmt.Errorf("kernel: %w", err)
	}
	if a.Error != "" {
		return a, Errno(a.Error)
	}
	return a, nil
}

// do is call for what has no answer.
func (k *Kernel) do(ctx context.Context, r message.Request) error {
	_, err := k.call(ctx, r)
	return err
}

func (k *Kernel) open(ctx context.Context) (*conn, error) {
	c, err := k.dial(ctx, k.machine, Port, nil)
	if err != nil {
		return nil, fmt.Errorf("kernel: %w", err)
	}
	return &conn{Conn: c}, nil
}

// watch calls hear for each event until ctx ends, then it returns nil.
func (k *Kernel) watch(ctx context.Context, ready func(), hear func(message.Event)) error {
	c, err := k.open(ctx)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer func() { _ = c.Close() }() // it was only read
	a, err := c.ask(message.Request{Watch: true})
	if err == nil && a.Error != "" {
		err = Errno(a.Error)
	}
	if err == nil {
		ready()
	}
	for err == nil {
		if a, err = c.answer(); err == nil && a.Event != nil {
			hear(*a.Event)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("kernel: events: %w", err)
}

// conn is a connection to the kernel.
type conn struct {
	net.Conn
	decoder message.Decoder
}

func (c *conn) ask(r message.Request) (message.Answer, error) {
	if _, err := c.Write(message.Encode(r)); err != nil {
		return message.Answer{}, err
	}
	return c.answer()
}

func (c *conn) answer() (a message.Answer, err error) {
	b := make([]byte, 64<<10)
	for {
		if ok, err := c.decoder.Next(&a); ok || err != nil {
			return a, err
		}
		n, err := c.Read(b)
		c.decoder.Add(b[:n])
		if err != nil && n == 0 {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return a, err
		}
	}
}

// hopeless tells whether an error is not one address's alone.
func hopeless(err error) bool {
	var errno Errno
	return !errors.As(err, &errno) || slices.Contains([]Errno{"EPERM", "EACCES", "EROFS", "EOPNOTSUPP", "ENOBUFS"}, errno)
}
