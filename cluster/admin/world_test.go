// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/internal/testkit"
)

const patience = testkit.Patience

// world is a CA and three members m1 to m3, of which m1 leads, with real API servers on loopback. Behind them is
// not Raft but one shared configuration that does as it is told.
type world struct {
	t       testing.TB
	now     func() time.Time // of the servers
	ca      pkitest.CA
	group   *sharedGroup
	members []*member
}

type member struct {
	name     string
	address  string
	endpoint *pki.Endpoint
	registry *prometheus.Registry
	log      *testkit.Log
	view     *memberView
	peers    *admin.Peers
	conns    *cutListener
	stop     func()
}

// cutListener can break all connections that came in.
type cutListener struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *cutListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

func (m *member) cut() {
	m.conns.mu.Lock()
	defer m.conns.mu.Unlock()
	for _, conn := range m.conns.conns {
		_ = conn.Close()
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, ca: pkitest.New(t), group: &sharedGroup{leader: "m1-x"}}
	for _, name := range []string{"m1", "m2", "m3"} {
		w.start(name, func() pki.Membership { return pki.Membership{Group: "g1", Epoch: 1} })
	}
	t.Cleanup(w.stop)
	for _, m := range w.members {
		w.group.members = append(w.group.members, admin.MemberStatus{Member: admin.Member{
			ID: m.name + "-x", Name: m.name, Address: "192.0.2.1:7444", APIAddress: m.address, Voter: true, Healthy: true,
		}, Format: 2})
	}
	return w
}

func (w *world) endpoint(req pki.Request) *pki.Endpoint {
	w.t.Helper()
	return &pki.Endpoint{Source: w.ca.Source(w.t, req)}
}

func (w *world) start(name string, self pki.Self) {
	w.t.Helper()
	m := &member{name: name, registry: prometheus.NewRegistry(), log: &testkit.Log{}, endpoint: w.endpoint(pki.Request{Role: pki.Member, Name: name})}
	log := slog.New(slog.NewTextHandler(m.log, nil))
	refusals, err := pki.NewRefusals(log, m.registry, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	m.endpoint.Self, m.endpoint.Refusals = self, refusals
	server, err := admin.NewServer(admin.ServerOptions{Endpoint: m.endpoint, Log: log, Metrics: m.registry, Now: w.now})
	if err != nil {
		w.t.Fatal(err)
	}
	peers := admin.NewPeers(m.endpoint, nil)
	view := &memberView{group: w.group, id: name + "-x"}
	m.view = view
	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewRaftServiceHandler(admin.NewRaftService(view, peers, log), o...)
	})
	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewJoinServiceHandler(admin.NewJoinService(view, view, peers), o...)
	})
	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(&echoAgents{}, o...)
	})
	server.MountPage("/ui/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a page")
	}), pki.Viewer, pki.Operator)
	server.MountPage("/stack", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(debug.Stack()) // it is read to its end
	}), pki.Viewer)
	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewRecordServiceHandler(&panickingRecord{}, o...)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	m.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	m.conns = &cutListener{Listener: listener}
	go func() { served <- server.Serve(ctx, m.conns) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			w.t.Errorf("serve %s: %v", name, err)
		}
	})
	m.peers = peers
	w.members = append(w.members, m)
}

// stop ends the members' connections to each other first: a server waits a second for idle ones.
func (w *world) stop() {
	var stopping sync.WaitGroup
	for _, m := range w.members {
		m.peers.Close()
	}
	for _, m := range w.members {
		stopping.Go(m.stop)
	}
	stopping.Wait()
}

func (w *world) member(name string) *member {
	for _, m := range w.members {
		if m.name == name {
			return m
		}
	}
	w.t.Fatalf("no member %s", name)
	return nil
}

// client calls one member, or several in that order, as somebody.
func (w *world) client(role pki.Role, name string, members ...string) *admin.Client {
	w.t.Helper()
	endpoint := w.endpoint(pki.Request{Role: role, Name: name})
	if role == pki.Member {
		endpoint.Self = func() pki.Membership { return pki.Membership{Group: "g1", Epoch: 1} }
	}
	return w.clientFor(endpoint, members...)
}

func (w *world) clientFor(endpoint *pki.Endpoint, members ...string) *admin.Client {
	var servers []string
	for _, name := range members {
		servers = append(servers, w.member(name).address)
	}
	client := admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: servers})
	w.t.Cleanup(client.Close)
	return client
}

func (w *world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

var errBoom = errors.New("boom")
