// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"testing"

	"fairlead.io/fairlead/api/desired"
)

// The ports that tests meet on.
var ports = []uint16{30100, 30101, 30102}

// machine is a node's TCP ports, some of which other programs hold.
type machine struct {
	mu     sync.Mutex
	others map[uint16]bool
	ours   map[uint16]*socket
	sick   bool // the node does not carry out what it is told
}

func newMachine() *machine { return &machine{others: map[uint16]bool{}, ours: map[uint16]*socket{}} }

func (m *machine) listen(port uint16) (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.others[port] || m.ours[port] != nil {
		return nil, fmt.Errorf("listen on %d: %w", port, syscall.EADDRINUSE)
	}
	s := &socket{machine: m, port: port, in: make(chan net.Conn), done: make(chan struct{})}
	m.ours[port] = s
	return s, nil
}

func (m *machine) healthy() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.sick
}

func (m *machine) socket(port uint16) *socket {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ours[port]
}

// socket is one that listens on both families.
type socket struct {
	machine *machine
	port    uint16
	in      chan net.Conn
	once    sync.Once
	done    chan struct{}
}

// Accept implements net.Listener.
func (s *socket) Accept() (net.Conn, error) {
	select {
	case c := <-s.in:
		return c, nil
	case <-s.done:
		return nil, errors.New("the socket is gone")
	}
}

// Close implements net.Listener.
func (s *socket) Close() error {
	s.once.Do(func() {
		s.machine.mu.Lock()
		defer s.machine.mu.Unlock()
		delete(s.machine.ours, s.port)
		close(s.done)
	})
	return nil
}

// Addr implements net.Listener.
func (s *socket) Addr() net.Addr { return &net.TCPAddr{Port: int(s.port)} }

// The node's addresses as a socket of both families shows them.
var nodeAddress = map[bool]net.IP{true: net.ParseIP("198.51.100.1"), false: net.ParseIP("2001:db8:f::1")}

// end is the node's end of a connection.
type end struct {
	net.Conn
	at net.IP
}

// LocalAddr implements net.Conn.
func (e end) LocalAddr() net.Addr { return &net.TCPAddr{IP: e.at, Port: 1} }

var errRefused = errors.New("refused")

// dial connects to a port of one of the node's addresses.
func (m *machine) dial(port uint16, ipv4 bool) (net.Conn, error) {
	s := m.socket(port)
	if s == nil {
		return nil, errRefused
	}
	client, node := net.Pipe()
	select {
	case s.in <- end{node, nodeAddress[ipv4]}:
		return client, nil
	case <-s.done:
		return nil, errRefused
	}
}

// ask makes a health check.
func (m *machine) ask(port uint16, ipv4 bool) (*http.Response, string, error) {
	c, err := m.dial(port, ipv4)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = c.Close() }()
	return exchange(c)
}

// exchange asks on a connection.
func exchange(c net.Conn) (*http.Response, string, error) {
	if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n"); err != nil {
		return nil, "", err
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, "", err
	}
	body, err := io.ReadAll(r.Body)
	return r, string(body), err
}

// run starts Checks over a machine's ports.
func run(m *machine, log *slog.Logger) (c *Checks, stop func(), err error) {
	c, err = New(Options{Node: "n1", Listen: m.listen, Healthy: m.healthy, Log: log})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }() // it ends with ctx
	return c, func() { cancel(); <-done }, nil
}

// endpoint is one that answers at a port, on a node.
func endpoint(address, node string, ready bool) desired.Endpoint {
	return desired.Endpoint{
		Address: netip.MustParseAddr(address), Node: node, Ready: ready, Serving: true, Terminating: !ready,
		Ports: []desired.EndpointPort{{Name: "http", Port: desired.Port{Protocol: 6, Number: 8080}}},
	}
}

// inBubble hides the deadline of a test, which must not be asked for in a bubble.
type inBubble struct{ testing.TB }
