// SPDX-License-Identifier: Apache-2.0

package enrol_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	fairleadv1 "fairlead.io/fairlead/api/fairlead/v1"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// world is a CA and a record that all members share.
type world struct {
	ca    pkitest.CA
	group *grouptest.Group
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{ca: pkitest.New(t), group: grouptest.NewGroup(t)}
	w.group.Apply(t, &fsm.PutNode{ID: "n1"}, &fsm.PutNode{ID: "n2"}, &fsm.PutNode{ID: "n3"})
	return w
}

// member is an API server on loopback with real certificates.
type member struct {
	address  string
	log      *testkit.Log
	registry *prometheus.Registry
	source   *pki.Source
	peers    *admin.Peers
	files    pki.Files
}

// serve starts a member; what o leaves out is that of a member without the CA's key.
func (w *world) serve(t *testing.T, name string, o enrol.Options, others ...*member) *member {
	t.Helper()
	m := &member{log: &testkit.Log{}, registry: prometheus.NewRegistry(), files: w.ca.Issue(t, pki.Request{Role: pki.Member, Name: name})}
	log := slog.New(slog.NewTextHandler(m.log, nil))
	refusals, err := pki.NewRefusals(log, m.registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.source = pkitest.Open(t, m.files)
	endpoint := &pki.Endpoint{Source: m.source, Self: func() pki.Membership { return pki.Membership{Group: "g1", Epoch: 1} }, Refusals: refusals, Enrols: true}
	m.peers = admin.NewPeers(endpoint, nil)
	o.Member, o.Record, o.Proposer, o.Log, o.Metrics = name, w.group, w.group, log, m.registry
	o.Others = func() []enrol.Other {
		var addresses []string
		for _, other := range others {
			addresses = append(addresses, other.address)
		}
		return enrol.Members(m.peers, addresses)
	}
	service, err := enrol.New(o)
	if err != nil {
		t.Fatal(err)
	}
	server, err := admin.NewServer(admin.ServerOptions{Endpoint: endpoint, Log: log, Metrics: m.registry})
	if err != nil {
		t.Fatal(err)
	}
	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewEnrolServiceHandler(service, o...)
	})
	server.Mount(func(o ...connect.HandlerOption) (string, http.Handler) {
		return fairleadv1connect.NewAgentServiceHandler(silent{}, o...)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.address = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		m.peers.Close()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	return m
}

// silent is an agents' service whose streams are open and say nothing.
type silent struct {
	fairleadv1connect.UnimplementedAgentServiceHandler
}

func (silent) Sync(ctx context.Context, _ *fairleadv1.SyncRequest, s *connect.ServerStream[fairleadv1.SyncResponse]) error {
	for ctx.Err() == nil {
		if err := s.Send(&fairleadv1.SyncResponse{More: true}); err != nil {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// counted gives the calls by what came of them, "call/result".
func (m *member) counted(t *testing.T) map[string]int {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		if f.GetName() != "fairlead_certificate_calls_total" {
			continue
		}
		for _, metric := range f.GetMetric() {
			out[fmt.Sprintf("%s/%s", metric.GetLabel()[0].GetValue(), metric.GetLabel()[1].GetValue())] = int(metric.GetCounter().GetValue())
		}
	}
	return out
}

// host is a machine that has a CA file, a token and nothing else.
type host struct {
	files     pki.Files
	ca, token string
}

func (w *world) host(t *testing.T, token string) *host {
	t.Helper()
	dir := t.TempDir()
	h := &host{
		ca: w.ca.Cert(), token: filepath.Join(dir, "token"),
		files: pki.Files{CA: filepath.Join(dir, "own", "ca.crt"), Cert: filepath.Join(dir, "own", "agent.crt"), Key: filepath.Join(dir, "own", "agent.key")},
	}
	if err := os.WriteFile(h.token, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

// enrol asks members for the certificate of a node.
func (h *host) enrol(t *testing.T, node string, members ...*member) error {
	t.Helper()
	var addresses []string
	for _, m := range members {
		addresses = append(addresses, m.address)
	}
	return enrol.Get(t.Context(), h.files, enrol.AsStranger(node, false, h.ca, h.token, addresses, nil))
}

// offer has an operator offer a token, as `fairlead pki enrol` does.
func (w *world) offer(t *testing.T, m *member, node string, ttl time.Duration) string {
	t.Helper()
	return offer(t, w.ca, m, node, ttl)
}

func offer(t *testing.T, ca pkitest.CA, m *member, node string, ttl time.Duration) string {
	t.Helper()
	operator := ca.Issue(t, pki.Request{Role: pki.Operator, Name: "alice"})
	client := admin.NewClient(admin.ClientOptions{Endpoint: &pki.Endpoint{Source: pkitest.Open(t, operator)}, Servers: []string{m.address}})
	defer client.Close()
	token := enrol.NewToken()
	_, err := client.Enrol.Offer(t.Context(), &fairleadv1.OfferRequest{Node: node, TokenSha256: string(enrol.Sum(token)), TtlSeconds: uint32(ttl / time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// offered is the record of a token.
func (w *world) offered(token string) *fsm.Enrolment {
	e, _ := fsm.Get[*fsm.Enrolment](w.group.Read(), fsm.TableEnrolments, string(enrol.Sum(token)))
	return e
}

// secrets are words that must not be in a log.
func hasSecret(log string, secrets ...string) bool {
	for _, s := range secrets {
		if s != "" && strings.Contains(log, s) {
			return true
		}
	}
	return false
}
