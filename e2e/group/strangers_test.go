// SPDX-License-Identifier: Apache-2.0

package group_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"fairlead.io/fairlead/e2e/lab"
)

const (
	// again is after what time a stranger comes again whose connection was ended.
	again = 500 * time.Millisecond
	// crowdSize is how many of a kind there are at each port: more than a source has places.
	crowdSize = 100
)

// strangers are connections of those who prove nothing, each opened again and again.
type strangers struct {
	t   *testing.T
	ctx context.Context
	all sync.WaitGroup
}

// come begins, and ends with the returned function.
func come(t *testing.T) (s *strangers, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s = &strangers{t: t, ctx: ctx}
	end = func() { cancel(); s.all.Wait() }
	t.Cleanup(end)
	return s, end
}

// hold keeps n connections from an address to another one. Each does something and then waits until it is ended.
func (s *strangers) hold(n int, from, to string, do func(net.Conn) error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for range n {
		s.all.Go(func() {
			for s.ctx.Err() == nil {
				if conn, err := d.DialContext(s.ctx, "tcp", to); err == nil {
					unwatch := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
					_ = do(conn) // until it is ended, by whomever
					unwatch()
					_ = conn.Close()
				}
				select {
				case <-time.After(again):
				case <-s.ctx.Done():
				}
			}
		})
	}
}

// silent says nothing.
func silent(c net.Conn) error {
	_, err := io.Copy(io.Discard, c)
	return err
}

// slow says something, a byte at a time.
func slow(text string) func(net.Conn) error {
	return func(c net.Conn) error {
		for i := 0; ; i++ {
			if _, err := c.Write([]byte{text[i%len(text)]}); err != nil {
				return err
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
}

// enrolling finishes a handshake as who wants to enrol does, and asks for nothing.
func enrolling(c net.Conn) error {
	return silent(tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1", "fairlead-enrol"}}))
}

// settings finishes a handshake, as who wants to enrol if there is no certificate, and sends SETTINGS of HTTP/2 without end.
func settings(shown []tls.Certificate) func(net.Conn) error {
	return func(c net.Conn) error {
		secured := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "fairlead-enrol"}, Certificates: shown})
		if _, err := io.WriteString(secured, http2.ClientPreface); err != nil {
			return err
		}
		go func() { _, _ = io.Copy(io.Discard, secured) }() // until it is ended
		for framer := http2.NewFramer(secured, secured); ; {
			if err := framer.WriteSettings(); err != nil {
				return err
			}
		}
	}
}

// unread asks for something and does not read it.
func unread(path string) func(net.Conn) error {
	return func(c net.Conn) error {
		if err := c.(*net.TCPConn).SetReadBuffer(2048); err != nil {
			return err
		}
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			return err
		}
		for { // it is ended when writing fails
			time.Sleep(again)
			if _, err := c.Write([]byte("G")); err != nil {
				return err
			}
		}
	}
}

// attack has all kinds of strangers come to all ports of all members, from an address of nobody and from one of a member.
func (s *strangers) attack(l *lab.Lab) {
	for _, from := range []string{"127.0.0.66", l.Members[0].Address} {
		for _, m := range l.Members {
			api, raft, health := m.Address+":7443", m.Address+":7444", m.Address+":7480"
			for _, to := range []string{api, raft, health} {
				s.hold(crowdSize, from, to, silent)
			}
			s.hold(20, from, api, slow("\x16\x03\x01"))
			s.hold(20, from, raft, slow("\x16\x03\x01"))
			s.hold(20, from, health, slow("GET / HTTP/1.1\r\nX: "))
			s.hold(40, from, api, enrolling)
			s.hold(20, from, health, unread("/metrics"))
			s.hold(4, from, api, settings(nil))
		}
	}
}

// slowedDown is nil once each member has slowed somebody down at its API.
func slowedDown(t *testing.T, l *lab.Lab) error {
	for _, m := range l.Members {
		const name = `fairlead_connections_slowed_total{port="api"}`
		if n := metric(t, m, name); n == "" || n == "0" { // it has none where frames are not limited at all
			return fmt.Errorf("%s: %s is %q", m.Name, name, n)
		}
	}
	return nil
}

// Whoever connects to members' ports, and says nothing, half of something, or asks and does not read, costs no leader, no route and no
// answer, and keeps no member from coming back: one, or all of them at once.
func TestStrangersAtPortsHurtNobody(t *testing.T) {
	l := started(t, lab.Options{Log: "info"})
	l.Agreed()
	before, stop := standing(t, l), l.NeverMissing(prefix(0))
	s, end := come(t)
	s.attack(l)
	l.Eventually("the crowd", func() error {
		for _, m := range l.Members {
			for _, port := range []string{"api", "raft", "health"} {
				if name := fmt.Sprintf(`fairlead_connections_closed_total{port="%s",reason="source-limit"}`, port); metric(t, m, name) == "0" {
					return fmt.Errorf("%s: %s is 0", m.Name, name)
				}
			}
		}
		return nil
	})
	l.Eventually("frames that are read slowly", func() error { return slowedDown(t, l) })
	watched := watch(t, l)
	for i := range 5 {
		l.Manifests.Service(1, 1+i%3)
		l.Bird.WaitNextHops(prefix(1), lab.NodeAddress(1+i%3))
	}
	time.Sleep(attackFor(t, 5*time.Second)) // for what comes late: leaders that are lost, lines that are said again and again
	watched.judge(before)

	first := l.Leader()
	first.Kill()
	if second := l.Leader(); second == first {
		t.Errorf("%s leads, and was killed", first.Name)
	}
	first.Start()
	l.Agreed()
	for _, m := range l.Members {
		m.Kill()
	}
	for _, m := range l.Members {
		m.Start()
	}
	l.Leader()
	l.Agreed()
	l.Manifests.Service(2, 2)
	l.Bird.WaitNextHops(prefix(2), lab.NodeAddress(2))
	end()
	l.Eventually("nothing is left of them", func() error {
		for _, m := range l.Members {
			for _, port := range []string{"api", "raft"} {
				for _, stage := range []string{"silent", "unproven", "guest"} {
					if n := metric(t, m, fmt.Sprintf(`fairlead_connections{port="%s",stage="%s"}`, port, stage)); n != "0" {
						return fmt.Errorf("%s has %s %s connections at %s", m.Name, n, stage, port)
					}
				}
			}
		}
		return nil
	})
	stop()
}
