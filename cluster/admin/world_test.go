// SPDX-License-Identifier: Apache-2.0

package admin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
)

const patience = 10 * time.Second

// world is a CA and three members m1 to m3, of which m1 leads, with real API servers on loopback. Behind them is
// not Raft but one shared configuration that does as it is told.
type world struct {
	t       testing.TB
	now     func() time.Time // of the servers
	ca      string
	group   *sharedGroup
	members []*member
}

type member struct {
	name     string
	address  string
	endpoint *pki.Endpoint
	registry *prometheus.Registry
	log      *lockedBuffer
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
	w := &world{t: t, ca: filepath.Join(t.TempDir(), "ca"), group: &sharedGroup{leader: "m1-x"}}
	if err := pki.Init(w.ca, pki.CAOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"m1", "m2", "m3"} {
		w.start(name, func() (string, uint64) { return "g1", 1 })
	}
	t.Cleanup(w.stop)
	for _, m := range w.members {
		w.group.members = append(w.group.members, admin.MemberStatus{Member: admin.Member{
			ID: m.name + "-x", Name: m.name, Address: "192.0.2.1:7444", APIAddress: m.address, Voter: true, Healthy: true,
		}})
	}
	return w
}

func (w *world) endpoint(req pki.Request) *pki.Endpoint {
	w.t.Helper()
	if req.Role == pki.Member {
		req.Hosts = []string{"127.0.0.1"}
	}
	issued, err := pki.Issue(w.ca, req)
	if err != nil {
		w.t.Fatal(err)
	}
	files, err := issued.Write(w.t.TempDir())
	if err != nil {
		w.t.Fatal(err)
	}
	source, err := pki.OpenSource(files, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	return &pki.Endpoint{Source: source}
}

func (w *world) start(name string, self pki.Self) {
	w.t.Helper()
	m := &member{name: name, registry: prometheus.NewRegistry(), log: &lockedBuffer{}, endpoint: w.endpoint(pki.Request{Role: pki.Member, Name: name})}
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
		endpoint.Self = func() (string, uint64) { return "g1", 1 }
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

// sharedGroup is what the members agree on.
type sharedGroup struct {
	mu      sync.Mutex
	members []admin.MemberStatus
	leader  string // server id; empty: nobody
	index   uint64
	done    []string // what was carried out: "m1: remove m3-x for operator/alice (reason), force"
	record  []byte
}

func (g *sharedGroup) history() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.done)
}

func (g *sharedGroup) edit(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
}

// memberView is the group as one member has it.
type memberView struct {
	group    *sharedGroup
	id       string
	believes string // whom it takes for the leader, if not the one who is
	digest   string // of its record, if not the others'

	onSnapshot func() // runs while a snapshot is taken
}

func (v *memberView) Self() admin.Member {
	return admin.Member{ID: v.id, Name: strings.TrimSuffix(v.id, "-x")}
}

func (v *memberView) Leader() (admin.Member, bool) {
	v.group.mu.Lock()
	defer v.group.mu.Unlock()
	leader := v.group.leader
	if v.believes != "" {
		leader = v.believes
	}
	for _, m := range v.group.members {
		if m.ID == leader {
			return m.Member, true
		}
	}
	return admin.Member{}, false
}

func (v *memberView) Status(context.Context) (admin.Status, error) {
	v.group.mu.Lock()
	defer v.group.mu.Unlock()
	status := admin.Status{Group: "g1", Epoch: 1, Format: 1, Term: 7, Configuration: v.group.index}
	for _, m := range v.group.members {
		m.Leader = m.ID == v.group.leader
		if v.id != v.group.leader {
			m.Healthy = false // only the leader knows
		}
		if m.ID == v.id {
			m.State, m.Term, m.Applied, m.Commit, m.Digest, m.Version, m.Group, m.Epoch = "Follower", 7, 42, 42, "d1", "v1", "g1", 1
			if v.digest != "" {
				m.Digest = v.digest
			}
			m.Heard, m.LastContact = true, 5*time.Millisecond
			if m.Leader {
				m.State, m.LastContact = "Leader", 0
			}
		}
		status.Members = append(status.Members, m)
	}
	return status, nil
}

// do carries a change out if this member leads.
func (v *memberView) do(what string, change admin.Change, how func(*sharedGroup)) error {
	v.group.mu.Lock()
	defer v.group.mu.Unlock()
	if v.id != v.group.leader {
		return admin.NotLeader
	}
	how(v.group)
	v.group.index++
	entry := fmt.Sprintf("%s: %s for %s (%s)", v.Self().Name, what, change.Actor, change.Reason)
	if change.Force {
		entry += ", force"
	}
	v.group.done = append(v.group.done, entry)
	return nil
}

func (v *memberView) set(server admin.Member, voter bool) func(*sharedGroup) {
	return func(g *sharedGroup) {
		server.Voter = voter
		for i := range g.members {
			if g.members[i].ID == server.ID {
				g.members[i].Voter = voter
				return
			}
		}
		g.members = append(g.members, admin.MemberStatus{Member: server})
	}
}

func (v *memberView) AddVoter(_ context.Context, s admin.Member, c admin.Change) error {
	return v.do("add voter "+s.ID, c, v.set(s, true))
}

func (v *memberView) AddNonvoter(_ context.Context, s admin.Member, c admin.Change) error {
	return v.do("add non-voter "+s.ID, c, v.set(s, false))
}

func (v *memberView) Demote(_ context.Context, id string, c admin.Change) error {
	return v.do("demote "+id, c, v.set(admin.Member{ID: id}, false))
}

func (v *memberView) Remove(_ context.Context, id string, c admin.Change) error {
	return v.do("remove "+id, c, func(g *sharedGroup) {
		g.members = slices.DeleteFunc(g.members, func(m admin.MemberStatus) bool { return m.ID == id })
	})
}

func (v *memberView) Transfer(_ context.Context, id string, c admin.Change) error {
	return v.do("transfer to "+id, c, func(g *sharedGroup) {
		if id == "" {
			id = "m2-x"
		}
		g.leader = id
	})
}

func (v *memberView) Snapshot(_ context.Context, c admin.Change) (admin.Snapshot, error) {
	if v.onSnapshot != nil && v.id == "m1-x" {
		v.onSnapshot()
	}
	return admin.Snapshot{ID: "s1", Index: 42}, v.do("snapshot", c, func(*sharedGroup) {})
}

func (v *memberView) Backup(_ context.Context, w io.Writer, c admin.Change) (admin.Backup, error) {
	var record []byte
	if err := v.do("backup", c, func(g *sharedGroup) { record = g.record }); err != nil {
		return admin.Backup{}, err
	}
	_, err := io.Copy(w, bytes.NewReader(record))
	return admin.Backup{Group: "g1", Revision: admin.Revision{Epoch: 1, Index: 42}}, err
}

func (v *memberView) Restore(_ context.Context, r io.Reader, dry bool, c admin.Change) (admin.Restored, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return admin.Restored{}, err
	}
	if dry {
		return admin.Restored{Differences: slices.Repeat([]string{"route 203.0.113.10/32 is not in the backup"}, admin.MaxDifferences+5), More: 2}, nil
	}
	err = v.do("restore", c, func(g *sharedGroup) { g.record = data })
	return admin.Restored{Revision: admin.Revision{Epoch: 2, Index: 43}}, err
}

func (v *memberView) Finalize(_ context.Context, format uint32, c admin.Change) (uint32, error) {
	return max(format, 3), v.do("finalize", c, func(*sharedGroup) {})
}

func (v *memberView) Confirm(_ context.Context, token string, founders []admin.Founder) (admin.Confirmation, error) {
	if token != "open sesame" || len(founders) != 3 {
		return admin.Confirmation{}, &admin.Refusal{Code: admin.BootstrapMismatch, What: "confirm the bootstrap", Why: "the token differs", Remedy: "give all the same"}
	}
	return admin.Confirmation{ServerID: v.id, Empty: true}, nil
}

func (v *memberView) Join(_ context.Context, j admin.Joining) (admin.Joined, error) {
	if j.Last > 0 {
		return admin.Joined{}, &admin.Refusal{Code: admin.Removed, What: "take in " + j.ID, Why: "it was removed", Remedy: "move its data folder away"}
	}
	err := v.do("join "+j.ID, admin.Change{Actor: j.Name}, v.set(j.Member, false))
	return admin.Joined{Group: "g1", Epoch: 1, Leader: v.Self().Name}, err
}

func (v *memberView) Report(_ context.Context, r admin.Report) (uint32, error) {
	return 3, v.do(fmt.Sprintf("report %s %s applied %d", r.ID, r.Version, r.Applied.Index), admin.Change{Actor: r.Name}, func(*sharedGroup) {})
}

var errBoom = errors.New("boom")

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
