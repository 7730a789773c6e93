// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

// quick makes everything that waits wait less, but for members: those are given up by tests of that alone, since a machine may stand still for a
// while and makes all connections anew then, which takes longer than before.
func quick() agent.Tuning {
	return agent.Tuning{
		Heartbeat: 20 * time.Millisecond, Silence: testkit.Patience, FirstStep: time.Hour,
		RetryMin: 5 * time.Millisecond, RetryMax: 50 * time.Millisecond,
	}
}

// once tries nothing again by itself.
func once(t *agent.Tuning) { t.RetryMin, t.RetryMax = time.Hour, time.Hour }

// hasty gives members up that are silent for a second, or say nothing at first for two.
func hasty(t *agent.Tuning) { t.Silence, t.FirstStep = time.Second, 2*time.Second }

// member is one member of a group, with its API on loopback behind real TLS.
type member struct {
	group   *grouptest.Group
	service *agents.Service
	api     *grouptest.API
}

// newMember starts a member over a record, which several may share: they are then always equally far.
func newMember(t testing.TB, w *grouptest.World, name string, g *grouptest.Group) *member {
	t.Helper()
	return newSpeaking(t, w, name, g, nil, nil)
}

// newGrantor is newMember of one that answers renewals of leases.
func newGrantor(t testing.TB, w *grouptest.World, name string, g *grouptest.Group, grantor agents.Leases) *member {
	t.Helper()
	return newSpeaking(t, w, name, g, grantor, nil)
}

// newSpeaking is newGrantor of one that tells nodes what to announce, too.
func newSpeaking(t testing.TB, w *grouptest.World, name string, g *grouptest.Group, grantor agents.Leases, shares agents.Shares) *member {
	t.Helper()
	m := &member{group: g}
	var err error
	m.service, err = agents.New(agents.Options{
		Member: name, Record: g, Proposer: g, Contact: g.Contact, Barrier: g.Barrier, Leases: grantor, Shares: shares, Log: slog.New(slog.DiscardHandler),
		Tuning: agents.Tuning{Look: 5 * time.Millisecond, Behind: 200 * time.Millisecond, Alone: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.service.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	m.api = w.Serve(t, name, m.mount)
	return m
}

func (m *member) mount(opts ...connect.HandlerOption) (string, http.Handler) {
	return fairleadv1connect.NewAgentServiceHandler(m.service, opts...)
}

// conn makes a Conn of the group's client.
type conn struct {
	fairleadv1connect.AgentServiceClient
	client *admin.Client
}

func (c conn) Close() { c.client.Close() }

// memory is a Store whose content outlives an agent.
type memory struct {
	mu    sync.Mutex
	data  []byte
	full  error // of Save
	saves int
}

func (m *memory) Load() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data, nil
}

func (m *memory) Save(data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full != nil {
		return m.full
	}
	m.data, m.saves = data, m.saves+1
	return nil
}

func (m *memory) set(f func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

// kernel is an Applier that checks what it is told: revisions never run back.
type kernel struct {
	agent.Recorder
	mu      sync.Mutex
	t       testing.TB
	newest  fsm.Revision
	refuse  error
	failing []netip.Prefix
	applied int
}

func (k *kernel) Apply(ctx context.Context, want desired.State) ([]agent.Failure, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if want.Revision.Before(k.newest) {
		k.t.Errorf("carried out %s after %s", want.Revision, k.newest)
	}
	k.newest = want.Revision
	if k.refuse != nil {
		return nil, k.refuse
	}
	k.applied++
	var failed []agent.Failure
	for _, p := range k.failing {
		failed = append(failed, agent.Failure{Prefix: p, Why: "no such device"})
	}
	_, _ = k.Recorder.Apply(ctx, want)
	return failed, nil
}

func (k *kernel) set(f func(*kernel)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k)
}

// node is a machine with an agent.
type node struct {
	*agent.Agent
	kernel *kernel
	store  *memory
	stop   func()
}

type nodeOptions struct {
	name, boot string
	seeds      []string
	store      *memory
	kernel     *kernel
	tuning     func(*agent.Tuning)
	leases     agent.Leases
	flows      agent.Flows
	speaker    agent.Speaker
	retire     *agent.Retirement
	// addressesOnly says that the kernel has no use for Services.
	addressesOnly bool
}

// startNode runs an agent until the test ends, or stop is called.
func startNode(t testing.TB, w *grouptest.World, o nodeOptions) *node {
	t.Helper()
	if o.store == nil {
		o.store = &memory{}
	}
	if o.kernel == nil {
		o.kernel = &kernel{t: t}
	}
	tuning := quick()
	if o.tuning != nil {
		o.tuning(&tuning)
	}
	source := w.Source(t, pki.Agent, o.name)
	n := &node{kernel: o.kernel, store: o.store}
	var err error
	n.Agent, err = agent.New(agent.Options{
		Node: o.name, Boot: o.boot, Seeds: o.seeds, Store: o.store, Applier: o.kernel, Leases: o.leases, Flows: o.flows, Tuning: tuning,
		Speaker: o.speaker, Retirement: o.retire, AddressesOnly: o.addressesOnly,
		Log: slog.New(slog.DiscardHandler),
		Connect: func(address string) agent.Conn {
			endpoint := &pki.Endpoint{Source: source, OrNewer: true, Self: pki.Naming(n.Membership)}
			client := admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: []string{address}})
			return conn{client.Agent, client}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := n.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("agent of %s: %v", o.name, err)
		}
	}()
	n.stop = func() { cancel(); <-done }
	t.Cleanup(n.stop)
	return n
}

func (n *node) has(prefixes ...string) func() bool {
	return func() bool {
		addresses := n.kernel.Told().Addresses()
		if len(addresses) != len(prefixes) {
			return false
		}
		for i, a := range addresses {
			if a.Prefix.String() != prefixes[i] {
				return false
			}
		}
		return true
	}
}

// acknowledged tells whether the record counts the hop of a prefix as acknowledged by its node.
func acknowledged(g *grouptest.Group, prefix string) func() bool {
	return func() bool {
		v := g.Read()
		r, ok := fsm.Get[*fsm.Route](v, fsm.TableRoutes, prefix)
		return ok && v.HopState(r, r.NextHops[0]) == fsm.HopAcknowledged
	}
}

// routed gives a service an address and routes it to n1.
func routed(t testing.TB, g *grouptest.Group, address string) {
	t.Helper()
	a := netip.MustParseAddr(address)
	id := fsm.ServiceID("ns/" + address)
	g.Apply(t,
		&fsm.PutService{Service: fsm.Service{ID: id}},
		&fsm.Allocate{Address: a, Service: id, Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}}},
		&fsm.SetRoute{Prefix: fsm.HostPrefix(a), Hops: []fsm.HopSpec{{Node: "n1", Address: netip.MustParseAddr("198.51.100.1")}}},
	)
}
