// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"fairlead.io/fairlead/api/desired"
	"fairlead.io/fairlead/api/fairlead/v1/fairleadv1connect"
	"fairlead.io/fairlead/cluster"
	"fairlead.io/fairlead/cluster/admin"
	"fairlead.io/fairlead/cluster/pki"
	"fairlead.io/fairlead/cluster/records"
	"fairlead.io/fairlead/dataplane/agent"
	"fairlead.io/fairlead/dataplane/agent/disk"
	"fairlead.io/fairlead/e2e/lab"
	"fairlead.io/fairlead/fsm"
)

const (
	thousandAgents   = 1000
	thousandServices = 100
	thousandChanges  = 50
	thousandIdle     = 20 * time.Second
)

// thousand takes the time from the answer to a committed change until all of a thousand agents have acknowledged it, at one member
// that all of them send their heartbeats to. The agents are the shipped loop, each with a certificate and connections of its own;
// they run in this process and carry nothing out.
func thousand(t *bench) figures {
	l := lab.New(t, lab.Options{Log: "warn", Members: 1, Steered: true})
	putNodes(l.Manifests, thousandAgents)
	putServices(l.Manifests, thousandServices)
	putWaiting(l.Manifests, thousandChanges)
	g := joinGroup(t, l)
	f := startFleet(g)
	t.progressf("%d agents follow", thousandAgents)
	before := g.usages()
	time.Sleep(thousandIdle)
	after := g.usages()
	member := l.Members[0]
	var out figures
	for i := range thousandChanges {
		at := g.allocate(i)
		begin := time.Now()
		f.await(at)
		out.samples = append(out.samples, milliseconds(time.Since(begin)))
	}
	out.detail = map[string]any{
		"agents": thousandAgents, "services": thousandServices, "heartbeats_per_s": thousandAgents * int(time.Second/desired.Heartbeat),
		"member_idle_cores": (after[member.Name].CPUSeconds - before[member.Name].CPUSeconds) / thousandIdle.Seconds(),
		"processes":         g.usages(),
	}
	return out
}

// putWaiting writes Services to which no pool gives an address by itself, so that this benchmark can, when it likes; and a pool for the others.
func putWaiting(m *lab.Manifests, services int) {
	text := `apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: large, namespace: metallb-system}
spec: {addresses: [198.18.0.0/15], serviceAllocation: {namespaces: [default]}}
---
apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: waiting, namespace: metallb-system}
spec: {addresses: [203.0.113.0/24], autoAssign: false}
`
	for i := range services {
		text += fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: svc-%d, namespace: waiting}
spec:
  type: LoadBalancer
  ports: [{name: http, port: 80, protocol: TCP}]
`, i)
	}
	m.Put("waiting.yaml", text)
}

// allocate commits the address of a waiting Service, and gives the revision of that.
func (g *group) allocate(i int) fsm.Revision {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	address := netip.AddrFrom4([4]byte{203, 0, 113, byte(i + 1)})
	outcomes, err := records.Forward(ctx, g.clients[g.Leader().Name].Record, g.epoch, cluster.Urgent, []fsm.Proposal{{
		Actor: "member/bench", Reason: "benchmark",
		Command: &fsm.Allocate{
			Address: address, Service: fsm.ServiceID(fmt.Sprintf("waiting/svc-%d", i)), Pool: "waiting",
			Ports: []fsm.Port{{Protocol: fsm.TCP, Number: 80}},
		},
	}})
	if err == nil {
		err = outcomes[0].Err()
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return outcomes[0].Revision
}

// memberConn is a way to one member.
type memberConn struct {
	fairleadv1connect.AgentServiceClient
	client *admin.Client
}

func (c memberConn) Close() { c.client.Close() }

// agentFleet is agents in this process.
type agentFleet struct {
	t      *bench
	agents []*agent.Agent
}

// startFleet runs an agent for each node until the benchmark ends, and waits until each has acknowledged something.
func startFleet(g *group) *agentFleet {
	f := &agentFleet{t: g.t}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	g.t.Cleanup(func() { cancel(); running.Wait() })
	folder := g.t.TempDir()
	for n := range thousandAgents {
		name, _ := largeNode(n)
		a, err := g.newAgent(name, filepath.Join(folder, name))
		if err != nil {
			g.t.Fatal(err)
		}
		f.agents = append(f.agents, a)
		running.Go(func() {
			if err := a.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				g.t.Error(err)
			}
		})
	}
	f.await(fsm.Revision{Index: 1})
	return f
}

func (g *group) newAgent(name, folder string) (a *agent.Agent, err error) {
	files := g.Issue(pki.Agent, name)
	source, err := pki.OpenSource(files, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	store, err := disk.Open(folder, "state")
	if err != nil {
		return nil, err
	}
	var seeds []string
	for _, m := range g.Members {
		seeds = append(seeds, m.Address+":7443")
	}
	endpoint := &pki.Endpoint{Source: source, OrNewer: true, Self: pki.Naming(a.Membership)}
	a, err = agent.New(agent.Options{
		Node: name, Boot: "bench", Seeds: seeds, Store: store, Applier: &agent.Recorder{}, AddressesOnly: true,
		Log: slog.New(slog.DiscardHandler),
		Connect: func(address string) agent.Conn {
			client := admin.NewClient(admin.ClientOptions{Endpoint: endpoint, Servers: []string{address}})
			return memberConn{client.Agent, client}
		},
	})
	return a, err
}

// await waits until every agent's acknowledgement of the revision, or of a later one, is committed.
func (f *agentFleet) await(r fsm.Revision) {
	end := time.Now().Add(2 * time.Minute)
	for _, a := range f.agents {
		for a.Status().Acknowledged.Before(r) {
			if time.Now().After(end) {
				f.t.Fatal(fmt.Errorf("an agent has acknowledged %v, want %v", a.Status().Acknowledged, r))
			}
			time.Sleep(time.Millisecond)
		}
	}
}
