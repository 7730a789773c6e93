// SPDX-License-Identifier: Apache-2.0

package pki_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/testkit"
)

const patience = testkit.Patience

// newCA makes a CA in a new folder.
func newCA(t testing.TB, opts pki.CAOptions) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "ca")
	if err := pki.Init(dir, opts); err != nil {
		t.Fatal(err)
	}
	return dir
}

// issue is that of a CA by its folder.
func issue(t testing.TB, ca string, req pki.Request) pki.Files {
	t.Helper()
	return pkitest.CA(ca).Issue(t, req)
}

func belongs(group string, epoch uint64) pki.Self {
	return func() pki.Membership { return pki.Membership{Group: group, Epoch: epoch} }
}

// server accepts connections on one port and echoes one byte at a time.
type server struct {
	endpoint *pki.Endpoint
	registry *prometheus.Registry
	log      *testkit.Log
	address  string
	protocol chan string
}

func serve(t testing.TB, endpoint pki.Endpoint, port pki.Port) *server {
	t.Helper()
	s := &server{registry: prometheus.NewRegistry(), log: &testkit.Log{}, protocol: make(chan string, 100)}
	refusals, err := pki.NewRefusals(slog.New(slog.NewTextHandler(s.log, nil)), s.registry, endpoint.Now)
	if err != nil {
		t.Fatal(err)
	}
	endpoint.Refusals = refusals
	s.endpoint = &endpoint
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = plain.Addr().String()
	listener := endpoint.Listener(port, plain)
	var running sync.WaitGroup
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.echo(conn.(*tls.Conn)) })
		}
	})
	return s
}

func (s *server) echo(conn *tls.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if conn.Handshake() != nil {
		return
	}
	select {
	case s.protocol <- conn.ConnectionState().NegotiatedProtocol:
	default: // nobody asks
	}
	_, _ = io.Copy(conn, conn)
}

// connect makes a connection that has proven to carry bytes both ways.
func (s *server) connect(t testing.TB, client *pki.Endpoint, port pki.Port) (*tls.Conn, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := client.Dial(ctx, (&net.Dialer{}).DialContext, port, s.address)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, ping(conn)
}

func ping(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{1}); err != nil {
		return pki.Explain(err)
	}
	_, err := io.ReadFull(conn, make([]byte, 1))
	return pki.Explain(err)
}

// refused gives the counted reasons, "port/reason" to how often.
func (s *server) refused(t testing.TB) map[string]int {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			counts[strings.Join(labels, "/")] = int(metric.GetCounter().GetValue())
		}
	}
	return counts
}
