// SPDX-License-Identifier: Apache-2.0

package member_test

import (
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/agents/grouptest"
	"fairlead.io/fairlead/cluster/liveness"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cmd/internal/config"
	"fairlead.io/fairlead/cmd/internal/member"
	"fairlead.io/fairlead/cmd/internal/node"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/bgp"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

// wire joins processes without sockets: it knows the handler of each API, and vouches for who calls.
type wire struct {
	mu   sync.Mutex
	apis map[string]http.Handler
	raft []*raft.InmemTransport
}

// client calls the API at an address as somebody.
func (w *wire) client(address string, caller func() admin.Caller) *admin.Client {
	return admin.NewClientOver(way{w, address, caller}, address)
}

// caller is who a process is to those it calls.
func caller(role pki.Role, name string, self pki.Self) func() admin.Caller {
	return func() admin.Caller {
		return admin.Caller{Identity: pki.Identity{Role: role, Name: name}, Membership: self()}
	}
}

type way struct {
	wire    *wire
	address string
	caller  func() admin.Caller
}

// Do implements connect.HTTPClient. An answer begins as soon as it is flushed.
func (w way) Do(r *http.Request) (*http.Response, error) {
	w.wire.mu.Lock()
	api := w.wire.apis[w.address]
	w.wire.mu.Unlock()
	if api == nil {
		return nil, admin.Unreachable
	}
	ctx, cancel := context.WithCancel(admin.WithCaller(r.Context(), w.caller()))
	body, to := io.Pipe()
	a := &answer{header: http.Header{}, to: to, begun: make(chan struct{})}
	asked := r.Clone(ctx)
	asked.RequestURI, asked.ProtoMajor = r.URL.Path, 2
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	go func() {
		defer cancel()
		defer func() { _ = to.Close() }()
		api.ServeHTTP(a, asked)
		a.WriteHeader(http.StatusOK)
	}()
	select {
	case <-a.begun:
		return &http.Response{StatusCode: a.status, ProtoMajor: 2, Header: a.header.Clone(), Body: body, Trailer: http.Header{}, Request: r}, nil
	case <-r.Context().Done(): // not ctx, which ends with the answer
		return nil, r.Context().Err()
	}
}

// answer is a ResponseWriter into a pipe.
type answer struct {
	header http.Header
	to     *io.PipeWriter
	begin  sync.Once
	begun  chan struct{}
	status int
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) { a.begin.Do(func() { a.status = status; close(a.begun) }) }

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.to.Write(p)
}

func (a *answer) Flush() { a.WriteHeader(http.StatusOK) }

// log is log and stable store in memory.
type log struct{ *raft.InmemStore }

func (log) Close() error { return nil }

// deaf hears no sign of life.
type deaf struct{}

func (deaf) Answers(context.Context, []netip.Addr) bool { return false }

type clock struct{ began time.Time }

func (c clock) Now() time.Duration                   { return time.Since(c.began) }
func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }
func (clock) Wall() time.Time                        { return time.Now() }

// member gives the edges of a member whose sockets, log and locks are all in memory.
func (w *wire) member() member.Edges {
	entries := log{raft.NewInmemStore()}
	open := func(string) (disk.Log, error) { return entries, nil }
	return member.Edges{
		Folder: func(path, name string) (*disk.Folder, error) {
			return disk.OpenWith(path, name, disk.Options{Lock: func(f *os.File) (io.Closer, error) { return f, nil }, MakeLog: open, OpenLog: open})
		},
		Network: w.network,
		Prober:  func(uint16, *slog.Logger) liveness.Prober { return deaf{} },
		Clock:   clock{time.Now()},
		Random:  rand.New(rand.NewPCG(1, uint64(len(w.raft)))),
	}
}

func (w *wire) network(o member.NetworkOptions) (*member.Network, error) {
	_, transport := raft.NewInmemTransport(raft.ServerAddress(o.Config.Advertise.Raft))
	w.mu.Lock()
	for _, other := range w.raft {
		other.Connect(transport.LocalAddr(), transport)
		transport.Connect(other.LocalAddr(), other)
	}
	w.raft = append(w.raft, transport)
	w.mu.Unlock()
	self := caller(pki.Member, o.Config.Name, o.Self)
	return &member.Network{
		Raft:  transport,
		Peers: admin.NewPeersOver(func(address string) *admin.Client { return w.client(address, self) }),
		ServeAPI: func(ctx context.Context, server *admin.Server) error {
			w.mu.Lock()
			w.apis[o.Config.Advertise.API] = server.Handler()
			w.mu.Unlock()
			<-ctx.Done()
			server.Stop()
			return nil
		},
		Close: func() { _ = transport.Close() },
	}, nil
}

// running runs something until stop is called, or the test ends.
func running(t *testing.T, what string, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(grouptest.Patience):
			t.Errorf("%s does not end", what)
		}
	})
	t.Cleanup(stop)
	return stop
}

// steering is a kernel that does as it is told.
type steering struct{ *agent.Recorder }

func (steering) Run(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

func (steering) Found(context.Context) ([]desired.Address, error) { return nil, nil }

func (steering) Close() {}

// speaker is one that nobody listens to. It remembers where it was told to send packets.
type speaker struct {
	prometheus.Gauge
	mu       sync.Mutex
	nextHops map[netip.Addr]bool
	detached bool
	drained  bool
}

func (s *speaker) Apply(_ context.Context, d bgp.Desired) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextHops = map[netip.Addr]bool{}
	for p := range d.Paths.All() {
		s.nextHops[p.NextHop] = true
	}
	return nil
}

func (s *speaker) Written(context.Context) (bool, error)     { return true, nil }
func (s *speaker) Links(context.Context) ([]bgp.Link, error) { return nil, nil }
func (s *speaker) Mend(context.Context, time.Duration) error { return nil }

func (s *speaker) Sessions(context.Context) (map[string]string, error) { return nil, nil }

func (s *speaker) Detach(context.Context) error { s.detached = true; return nil }

func (s *speaker) Drain(context.Context) error { s.drained = true; return nil }

func (s *speaker) announces(nextHop string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextHops[netip.MustParseAddr(nextHop)]
}

// agent gives the edges of an agent whose kernel is k.
func (w *wire) agent(name string, k steering) node.Edges {
	return node.Edges{
		Lock: func(string) (io.Closer, error) { return io.NopCloser(nil), nil },
		Boot: func() (string, error) { return "boot-1", nil },
		Steer: func(config.Agent, *slog.Logger, prometheus.Registerer) (node.Steering, error) {
			return k, nil
		},
		Connect: func(self pki.Self, _ pki.Revoked, address string) agent.Conn {
			return node.Over(w.client(address, caller(pki.Agent, name, self)))
		},
	}
}

// The wiring that ships asks nothing of a machine but its edges: over some without sockets, certificates and a kernel a
// member founds its group and leads it, an agent prepares its node, and only then the member announces that.
func TestMemberAndAgentRunOverEdgesWithoutAMachine(t *testing.T) {
	t.Parallel()
	const api, raftAt, nextHop = "m1:7443", "m1:7444", "192.0.2.11"
	w := &wire{apis: map[string]http.Handler{}}
	s := &speaker{Gauge: prometheus.NewGauge(prometheus.GaugeOpts{Name: "speaker"})}
	edges := w.member()
	edges.Speaker = func(config.BGP, *slog.Logger) (member.Speaker, error) { return s, nil }
	peers := t.TempDir()
	const peer = "apiVersion: metallb.io/v1beta2\nkind: BGPPeer\nmetadata: {name: switch}\nspec: {myASN: 65000, peerASN: 65001, peerAddress: 192.0.2.1}\n"
	if err := os.WriteFile(filepath.Join(peers, "switch.yaml"), []byte(peer), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := member.Open(config.Controller{
		Name: "m1", DataDir: filepath.Join(t.TempDir(), "m1"), BootstrapToken: "t",
		Advertise: config.Advertise{API: api, Raft: raftAt}, Members: []config.Member{{Name: "m1", API: api, Raft: raftAt}},
		Sources: config.Sources{Manifests: []string{"../../../examples/quickstart", peers}}, BGP: config.BGP{ASN: 65000},
	}, "test", edges, quiet)
	if err != nil {
		t.Fatal(err)
	}
	stop := running(t, "member", m.Run)
	testkit.Until(t, "it leads and knows the node", func() bool {
		_, known := fsm.Get[*fsm.Node](m.Record().Read(), fsm.TableNodes, "node-a")
		return m.Leads() && known
	})
	kernel := steering{&agent.Recorder{}}
	p, err := node.Open(config.Agent{
		Node: "node-a", StateDir: filepath.Join(t.TempDir(), "node-a"), Members: []string{api}, Steer: true, NAT: config.NATKubeProxy,
	}, w.agent("node-a", kernel), quiet)
	if err != nil {
		t.Fatal(err)
	}
	if s.announces(nextHop) {
		t.Error("the node is announced before it is prepared")
	}
	running(t, "agent", p.Run)
	testkit.Until(t, "the node is announced", func() bool { return s.announces(nextHop) })
	if kernel.Told().Len() == 0 {
		t.Errorf("announced, but not prepared; the agent is at %+v", p.Status())
	}
	if stop(); !s.detached || s.drained {
		t.Error("the member ended without leaving its sessions")
	}
}
