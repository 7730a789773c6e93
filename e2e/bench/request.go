// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// rateClients make requests at the same time, each one after the other.
const rateClients = 4

// rate gives how many requests a second are answered in a turn of that length. Each is told its number.
func rate(t *bench, name string, turn time.Duration, request func(i int) error) float64 {
	var next, done atomic.Int64
	var failure atomic.Pointer[error]
	begin := time.Now()
	var clients sync.WaitGroup
	for range rateClients {
		clients.Go(func() {
			for time.Since(begin) < turn {
				if err := request(int(next.Add(1))); err != nil {
					failure.Store(&err)
					return
				}
				done.Add(1)
			}
		})
	}
	clients.Wait()
	if err := failure.Load(); err != nil {
		t.Fatalf("%s: %v", name, *err)
	}
	return float64(done.Load()) / time.Since(begin).Seconds()
}

// asked is how long a request took since it began.
type asked struct{ connected, answered time.Duration }

// ask makes a connection, a request of one byte, and waits for the answer.
func ask(d net.Dialer, to netip.AddrPort) (took asked, err error) { return askTimes(d, to, 1) }

// askTimes makes so many requests over one connection, one after the other.
func askTimes(d net.Dialer, to netip.AddrPort, requests int) (took asked, err error) {
	begin := time.Now()
	d.Timeout = soon
	c, err := d.Dial("tcp", to.String())
	if err != nil {
		return took, err
	}
	defer c.Close()
	took.connected = time.Since(begin)
	_ = c.(*net.TCPConn).SetLinger(0) // leaves no port behind; Close resets what is over
	var answer [1]byte
	for range requests {
		if _, err := io.WriteString(c, "x"); err != nil {
			return took, err
		}
		if _, err := io.ReadFull(c, answer[:]); err != nil {
			return took, err
		}
	}
	took.answered = time.Since(begin)
	return took, nil
}
