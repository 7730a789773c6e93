// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"fairlead.io/fairlead/cluster/store/disk"
	"fairlead.io/fairlead/cluster/transport"
	"fairlead.io/fairlead/cluster/transport/transporttest"
	"fairlead.io/fairlead/fsm"
	"fairlead.io/fairlead/internal/freeport"
	"fairlead.io/fairlead/internal/testkit"
)

// The test binary plays a member process when this variable holds its processConfig.
const processVariable = "FAIRLEAD_TEST_MEMBER"

func TestMain(m *testing.M) {
	if raw := os.Getenv(processVariable); raw != "" {
		fmt.Fprintln(os.Stderr, runProcess(raw))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// processConfig is one member process: where it listens for Raft and for the test.
type processConfig struct {
	Name    string
	Dir     string
	Raft    map[string]string
	Control map[string]string
	Cert    []byte
	Key     []byte
	Tuning  Tuning
}

// processControl is what the test, and other members, ask of a member process.
type processControl struct {
	node  *Node
	state *fsm.State
}

// ProcessState is how a member process sees itself.
type ProcessState struct {
	Term    uint64
	Leading bool
	Applied Index
}

func (p *processControl) State(_ int, out *ProcessState) error {
	c := p.node.Contact()
	*out = ProcessState{Term: c.Term, Leading: p.node.LeadingTerm() > 0, Applied: c.Applied}
	return nil
}

func (p *processControl) Propose(i int, ok *bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := p.node.ProposeLocal(ctx, Urgent, put(i))
	*ok = err == nil
	return err
}

func (p *processControl) Has(i int, out *bool) error {
	*out = has(p.state, i)
	return nil
}

func (p *processControl) Confirm(r ConfirmRequest, out *Confirmation) (err error) {
	*out, err = p.node.Confirm(r)
	return err
}

func runProcess(raw string) error {
	var c processConfig
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		return err
	}
	folder, err := disk.Open(c.Dir, c.Name)
	if err != nil {
		return err
	}
	r := &realGroup{group: &group{log: testLog()}}
	if r.tls, err = transporttest.Parse(c.Cert, c.Key); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Raft[c.Name])
	if err != nil {
		return err
	}
	prove, err := transport.TLS(r.tls.Server(), r.tls.Name)
	if err != nil {
		return err
	}
	tr, err := transport.Listen(transport.Options{Listener: listener, Prove: prove, Dial: r.tls.Dial, Log: r.log})
	if err != nil {
		return err
	}
	var peers []Peer
	for name, address := range c.Raft {
		peers = append(peers, Peer{Name: name, Address: address})
	}
	state := fsm.New()
	node, err := Open(Options{
		Name: c.Name, Instance: folder.Identity().Instance, Stores: folder.Stores(), Path: folder.Path(), Transport: tr,
		Machine: Record{state}, NewMachine: emptyRecord, Fit: fsm.Fit, Encode: encodeFor(state), Opening: openingFor(state), Log: r.log, Tuning: c.Tuning,
		Bootstrap: &Bootstrap{Token: "t", Members: peers, Confirm: func(_ context.Context, p Peer, q ConfirmRequest) (Confirmation, error) {
			client, err := rpc.Dial("tcp", c.Control[p.Name])
			if err != nil {
				return Confirmation{}, err
			}
			defer func() { _ = client.Close() }()
			var out Confirmation
			return out, client.Call("Member.Confirm", q, &out)
		}},
	})
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Member", &processControl{node, state}); err != nil {
		return err
	}
	control, err := net.Listen("tcp", c.Control[c.Name])
	if err != nil {
		return err
	}
	go server.Accept(control)
	return node.Run(context.Background())
}

// processes is a group of member processes with folders on disk.
type processes struct {
	t       testing.TB
	configs map[string]processConfig
	running map[string]*exec.Cmd
	clients map[string]*rpc.Client
}

func startProcesses(t testing.TB, tuning Tuning, names ...string) *processes {
	t.Helper()
	r := newRealGroup(t, names...)
	cert, key := transporttest.Make(t)
	p := &processes{t: t, configs: map[string]processConfig{}, running: map[string]*exec.Cmd{}, clients: map[string]*rpc.Client{}}
	control := map[string]string{}
	for _, name := range names {
		l, err := freeport.Listen(netip.MustParseAddr("127.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		control[name] = l.Addr().String()
		_ = l.Close()
	}
	for _, name := range names {
		p.configs[name] = processConfig{
			Name: name, Dir: r.dirs[name], Raft: r.addresses, Control: control, Cert: cert, Key: key, Tuning: tuning,
		}
		p.start(name)
	}
	t.Cleanup(func() {
		for _, name := range names {
			p.kill(name)
		}
	})
	return p
}

func (p *processes) start(name string) {
	p.t.Helper()
	raw, err := json.Marshal(p.configs[name])
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processVariable+"="+string(raw))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.running[name] = cmd
	testkit.Until(p.t, "control port of "+name, func() bool {
		client, err := rpc.Dial("tcp", p.configs[name].Control[name])
		p.clients[name] = client
		return err == nil
	})
}

// kill is kill -9.
func (p *processes) kill(name string) {
	cmd := p.running[name]
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill() // it may be gone already
	_ = cmd.Wait()
	_ = p.clients[name].Close()
	delete(p.running, name)
}

// states asks every running member; those that do not answer are left out.
func (p *processes) states() map[string]ProcessState {
	out := map[string]ProcessState{}
	for name := range p.running {
		var s ProcessState
		if p.clients[name].Call("Member.State", 0, &s) == nil {
			out[name] = s
		}
	}
	return out
}

func (p *processes) leader() string {
	var found string
	testkit.Until(p.t, "a leading process", func() bool {
		for name, s := range p.states() {
			if s.Leading {
				found = name
			}
		}
		return found != ""
	})
	return found
}

// propose commits one command through whoever leads, trying all members at once, and returns when it is committed.
func (p *processes) propose(i int) {
	done := make(chan struct{})
	var once sync.Once
	for name := range p.running {
		client := p.clients[name]
		go func() {
			for {
				var ok bool
				err := client.Call("Member.Propose", i, &ok)
				if err == nil {
					once.Do(func() { close(done) })
					return
				}
				var server rpc.ServerError
				if !errors.As(err, &server) {
					return // the process is gone
				}
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
	}
	select {
	case <-done:
	case <-time.After(patience):
		p.t.Fatalf("no command committed within %v", patience)
	}
}

// Members are killed in the middle of their work (-9), one after the other; what was acknowledged is in the record of
// every one of them afterwards.
func TestAcknowledgedCommandsSurviveKill9(t *testing.T) {
	p := startProcesses(t, Tuning{}, "a", "b", "c")
	next := 0
	for range 4 {
		for range 20 {
			p.propose(next)
			next++
		}
		victim := p.leader()
		p.kill(victim)
		p.propose(next)
		next++
		p.start(victim)
	}
	for name, client := range p.clients {
		for i := range next {
			testkit.Until(t, fmt.Sprintf("%s has command %d", name, i), func() bool {
				var ok bool
				if err := client.Call("Member.Has", i, &ok); err != nil {
					t.Fatal(err)
				}
				return ok
			})
		}
	}
}
