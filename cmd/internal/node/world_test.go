// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/enrol"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/pki/pkitest"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/machine"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/freeport"
	"fairlead.io/fairlead/internal/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

// world is a group with one member's API on loopback, and a CA.
type world struct {
	ca      pkitest.CA
	group   *grouptest.Group
	api     *grouptest.API
	service *agents.Service
	// certified is where its API is made.
	certified *grouptest.World
	serve     func(address, member string) *grouptest.API // starts another one, or one again
}

func newWorld(t *testing.T) *world {
	t.Helper()
	certified := grouptest.NewWorld(t)
	w := &world{certified: certified, ca: certified.CA(), group: grouptest.NewGroup(t)}
	service, err := agents.New(agents.Options{
		Member: "m1", Record: w.group, Proposer: w.group, Contact: w.group.Contact, Barrier: w.group.Barrier, Log: quiet,
		Tuning: agents.Tuning{Look: 5 * time.Millisecond, Behind: 200 * time.Millisecond, Alone: time.Second, Note: 50 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.service = service
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("agents' service: %v", err)
		}
	})
	office, err := enrol.New(enrol.Options{Member: "m1", Record: w.group, Proposer: w.group, Signer: w.ca.Authority(t), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	w.serve = func(address, member string) *grouptest.API {
		t.Helper()
		return certified.ServeAt(t, address, member, func(o ...connect.HandlerOption) (string, http.Handler) {
			return fairleadv1connect.NewAgentServiceHandler(service, o...)
		}, func(o ...connect.HandlerOption) (string, http.Handler) {
			return fairleadv1connect.NewEnrolServiceHandler(office, o...)
		})
	}
	w.api = w.serve("", "m1")
	w.group.Apply(t, &fsm.PutNode{ID: "n1"})
	return w
}

// config is that of an agent whose kernel is left alone.
func (w *world) config(t *testing.T) config.Agent {
	t.Helper()
	files := w.ca.Issue(t, pki.Request{Role: pki.Agent, Name: "n1"})
	c := config.Agent{
		Node: "n1", StateDir: filepath.Join(t.TempDir(), "state"), Members: []string{w.api.Address},
		TLS: config.TLS{CA: files.CA, Cert: files.Cert, Key: files.Key}, NAT: config.NATKubeProxy, Health: freeAddress(t), Log: "info",
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) route(t *testing.T, address string) {
	t.Helper()
	a, id := netip.MustParseAddr(address), fsm.ServiceID("ns/"+address)
	w.group.Apply(t, &fsm.PutService{Service: fsm.Service{ID: id}}, &fsm.Allocate{Address: a, Service: id, Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}},
		&fsm.SetRoute{Prefix: fsm.HostPrefix(a), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := freeport.Listen(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// started is a process that runs until the test ends, or stop is called.
type started struct {
	*node.Process
	stop func() error
}

func start(t *testing.T, c config.Agent) *started {
	t.Helper()
	return startLogging(t, c, quiet)
}

func startLogging(t *testing.T, c config.Agent, log *slog.Logger) *started {
	t.Helper()
	return startOver(t, c, machine.Agent(), log)
}

func startOver(t *testing.T, c config.Agent, e node.Edges, log *slog.Logger) *started {
	t.Helper()
	var p *node.Process
	testkit.Until(t, "the agent's ports", func() bool { // a speaker of another test that looks for its connection holds all sockets, closed ones too, for a moment
		var err error
		if p, err = node.Open(c, e, log); err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
		return err == nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var ended error
	go func() { defer close(done); ended = p.Run(ctx) }()
	s := &started{p, func() error { cancel(); <-done; forked(); return ended }}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("agent: %v", err)
		}
	})
	return s
}

// forked waits until programs that other tests just start run: up to then they have, as forks of this process do, the locks of state folders
// that were closed here.
func forked() {
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
}

// ask gives status code and body of a page of the health listener.
func ask(t *testing.T, c config.Agent, path string) (int, string) {
	t.Helper()
	answer, err := http.Get("http://" + c.Health + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// unroute takes an address back, to the end.
func (w *world) unroute(t *testing.T, address string) {
	t.Helper()
	a, id := netip.MustParseAddr(address), fsm.ServiceID("ns/"+address)
	w.group.Apply(t, &fsm.SetRoute{Prefix: fsm.HostPrefix(a)}, &fsm.ReleaseAllocation{Address: a, Service: id})
	r, _ := fsm.Get[*fsm.Route](w.group.Read(), fsm.TableRoutes, fsm.HostPrefix(a).String())
	w.group.Apply(t, &fsm.FinishWithdrawal{Prefix: r.Prefix, Node: "n1", Address: r.NextHops[0].Address(), Since: r.NextHops[0].Since},
		&fsm.FreeAllocation{Address: a, Service: id})
}
