// SPDX-License-Identifier: Apache-2.0

//go:build wasip1 || simulated

package main

import (
	"context"
	"log/slog"
	"sync"

	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/dataplane/bgp/supervisor"
	"fairlead.io/fairlead/sim/guest/fact"
	"fairlead.io/fairlead/sim/guest/port"
	"fairlead.io/fairlead/sim/guest/speaker"
	"fairlead.io/fairlead/sim/guest/start"
)

// openSpeaker starts the member's speaker as it ships: in a child that is kept going, and that the world may kill.
func (g *guest) openSpeaker(c config.BGP, log *slog.Logger) (member.Speaker, error) {
	var newest children
	go newest.die(g.port.Listen(start.SpeakerPort).AcceptConn)
	s, err := supervisor.New(supervisor.Options{
		Settings: supervisor.Settings{ASN: c.ASN, RouterID: c.RouterID},
		Start: func() (supervisor.Child, error) {
			child := speaker.Start(speaker.Config{Dial: g.dial, Logger: log})
			newest.put(child)
			tell(fact.Speaking{On: true})
			go func() {
				<-child.Gone()
				tell(fact.Speaking{Why: child.Reason()})
			}()
			return child, nil
		},
		Logger: log,
	})
	if err != nil {
		return nil, err
	}
	return sessions{s}, nil
}

// children knows the one that runs, or ran last.
type children struct {
	mu    sync.Mutex
	child *speaker.Child
}

func (c *children) put(child *speaker.Child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.child = child
}

// die kills it whenever somebody connects, until nobody can any more.
func (c *children) die(next func() (*port.Conn, error)) {
	for {
		conn, err := next()
		if err != nil {
			return
		}
		_ = conn.Reset()
		c.mu.Lock()
		child := c.child
		c.mu.Unlock()
		if child != nil {
			child.Kill()
		}
	}
}

// sessions tells of its sessions in member's words.
type sessions struct{ *supervisor.Speaker }

// Sessions implements member.Speaker.
func (s sessions) Sessions(ctx context.Context) (map[string]string, error) {
	peers, err := s.Peers(ctx)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(peers))
	for _, p := range peers {
		out[p.Name] = p.State
	}
	return out, nil
}
