// SPDX-License-Identifier: Apache-2.0

// Package probe asks a machine for a sign of life: it knows ICMP echo and TCP. Whatever shows that a kernel is there
// is an answer, a refused connection too; silence and what routers say on the way are none. Start reading at Prober.
package probe

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// DefaultPort is the kubelet's: where it does not listen, a node refuses, which is an answer as well.
const DefaultPort = 10250

// Prober asks at a TCP port and with ICMP echo, at once. Its methods may be called from any goroutine.
type Prober struct {
	port uint16
	log  *slog.Logger
	told sync.Once // that there is no way to send echoes
}

// New makes a Prober; port 0 means DefaultPort.
func New(port uint16, log *slog.Logger) *Prober {
	if port == 0 {
		port = DefaultPort
	}
	return &Prober{port: port, log: log}
}

// Answers tells whether anything at one of the addresses answered before ctx, which has a deadline, ended.
func (p *Prober) Answers(ctx context.Context, addresses []netip.Addr) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan bool, 2*len(addresses))
	for _, a := range addresses {
		go func() { answers <- connects(ctx, netip.AddrPortFrom(a, p.port)) }()
		go func() { answers <- p.echoes(ctx, a) }()
	}
	for range 2 * len(addresses) {
		if <-answers {
			return true
		}
	}
	return false
}

// connects tells whether somebody took or refused a connection.
func connects(ctx context.Context, to netip.AddrPort) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
	}
	_ = conn.Close() // nothing was to be said on it
	return true
}

// echoes tells whether an ICMP echo came back.
func (p *Prober) echoes(ctx context.Context, to netip.Addr) bool {
	conn, err := dialEcho(to)
	if err != nil {
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
			p.told.Do(func() {
				p.log.Warn("no ICMP probes, only TCP", "err", err, "port", p.port,
					"remedy", "allow CAP_NET_RAW, or this group in net.ipv4.ping_group_range")
			})
		}
		return false
	}
	defer func() { _ = conn.Close() }() // nothing is left to be said on it
	return conn.echo(ctx)
}
