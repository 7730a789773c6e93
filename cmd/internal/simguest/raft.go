// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/transport"
	"fairlead.io/fairlead/sim/guest/port"
	"fairlead.io/fairlead/sim/guest/start"
)

// raftPort is what stands for mutual TLS at the Raft port of a member: the limits of the port, and when and by whom handshakes are done, are those of
// real ones.
type raftPort struct {
	g  *guest
	of func() pki.Membership
}

// openRaft listens for other members.
func (g *guest) openRaft(of func() pki.Membership, log *slog.Logger) (*transport.Transport, error) {
	p := &raftPort{g, of}
	return transport.Listen(transport.Options{
		Listener: g.port.Listen(start.RaftPort), Advertise: g.start.Name + ":" + start.RaftPort, Prove: p.prove, Dial: p.dial, Log: log,
	})
}

// prove judges who dialled, by the first words. Of one who says nothing a handshake waits for more, for as long as the port lets it.
func (p *raftPort) prove(plain net.Conn) (net.Conn, string, error) {
	c := port.Below(plain)
	membership, shown, has := strings.Cut(string(c.Hello()), "\n")
	if membership == "" {
		_, err := io.Copy(io.Discard, plain)
		return nil, "", errors.Join(errors.New("it does not say who it is"), err)
	}
	theirs, err := parseMembership(membership)
	who := p.g.identity(c.Peer())
	if err != nil || who.Role != pki.Member || pki.Meet(p.of(), theirs) != pki.Welcome {
		return nil, "", errors.New("no member of this group")
	}
	if !has {
		return plain, who.String(), nil
	}
	cert, err := p.g.handshakes.judge(c.Peer(), shown)
	if err != nil {
		return nil, "", err
	}
	return p.g.handshakes.keepConn(plain, c.Peer(), cert), who.String(), nil
}

// dial connects to another member.
func (p *raftPort) dial(ctx context.Context, to string) (net.Conn, error) {
	host, at, err := net.SplitHostPort(to)
	if err != nil {
		return nil, err
	}
	if !p.g.handshakes.on() {
		return p.g.port.Dial(ctx, host, at, []byte(membershipText(p.of())))
	}
	cert, err := p.g.handshakes.of(ctx, host)
	if err != nil {
		return nil, err
	}
	c, err := p.g.port.Dial(ctx, host, at, []byte(membershipText(p.of())+"\n"+p.g.handshakes.own()))
	if err != nil {
		return nil, err
	}
	return p.g.handshakes.keepConn(c, host, cert), nil
}
